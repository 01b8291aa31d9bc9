package breaker

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errDown = errors.New("down")
	err404  = errors.New("404")
)

// breaker has a threshold of 2, 10 s and one probe, unless cfg says otherwise.
func breaker(t *testing.T, cfg Config) *Breaker {
	t.Helper()
	if cfg.Failures == 0 {
		cfg.Failures = 2
	}
	if cfg.Cooldown == 0 {
		cfg.Cooldown = 10 * time.Second
	}
	if cfg.Probes == 0 {
		cfg.Probes = 1
	}
	cfg.Healthy = func(err error) bool { return err == err404 }
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func call(b *Breaker, result error) error {
	return b.Do(func(func() bool) error { return result })
}

// begin starts a call that ends with what is sent on the channel.
func begin(b *Breaker) (end chan<- error) {
	results := make(chan error)
	go b.Do(func(func() bool) error { return <-results })
	synctest.Wait()
	return results
}

// row is a call at a time since the start, and the state after it.
type row struct {
	at     time.Duration
	result error // what the dependency answers
	want   error // what the caller gets
	state  State
}

func TestTimelines(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name string
		cfg  Config
		rows []row
	}{
		{"opens at its threshold, stays open for 10 s, closes on a good probe", Config{}, []row{
			{0, errDown, errDown, Closed},
			{1 * s, errDown, errDown, Open},
			{1 * s, nil, ErrOpen, Open},
			{11 * s, nil, ErrOpen, Open}, // strictly more than 10 s
			{11*s + 1, nil, nil, Closed},
			{11*s + 1, errDown, errDown, Closed}, // counted afresh
		}},
		{"a failed probe opens it again at once", Config{}, []row{
			{0, errDown, errDown, Closed},
			{0, errDown, errDown, Open},
			{10*s + 1, errDown, errDown, Open},
			{10*s + 1, nil, ErrOpen, Open},
			{20*s + 1, nil, ErrOpen, Open},
			{20*s + 2, nil, nil, Closed},
		}},
		{"a success in between starts the count again", Config{}, []row{
			{0, errDown, errDown, Closed},
			{0, nil, nil, Closed},
			{0, errDown, errDown, Closed},
			{0, errDown, errDown, Open},
		}},
		{"answers in good health never open it", Config{}, slices.Repeat([]row{{0, err404, err404, Closed}}, 50)},
		{"a probe in good health closes it", Config{}, []row{
			{0, errDown, errDown, Closed},
			{0, errDown, errDown, Open},
			{10*s + 1, err404, err404, Closed},
		}},
		{"hang-ups are neutral", Config{}, []row{
			{0, errDown, errDown, Closed},
			{0, context.Canceled, context.Canceled, Closed},
			{0, context.Canceled, context.Canceled, Closed},
			{0, errDown, errDown, Open},
			{10*s + 1, context.Canceled, context.Canceled, HalfOpen}, // and leave the probe to the next
			{10*s + 1, nil, nil, Closed},
		}},
		{"all probes must succeed", Config{Probes: 3}, []row{
			{0, errDown, errDown, Closed},
			{0, errDown, errDown, Open},
			{10*s + 1, nil, nil, HalfOpen},
			{11 * s, nil, nil, HalfOpen},
			{12 * s, nil, nil, Closed},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := breaker(t, tt.cfg)
				start := time.Now()
				for i, r := range tt.rows {
					time.Sleep(time.Until(start.Add(r.at)))
					if err := call(b, r.result); !errors.Is(err, r.want) {
						t.Errorf("row %d at %v: %v, want %v", i, r.at, err, r.want)
					}
					if got := b.Snapshot().State; got != r.state {
						t.Errorf("row %d at %v: %v, want %v", i, r.at, got, r.state)
					}
				}
			})
		})
	}
}

func TestOneProbeAndNotASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		call(b, errDown)
		call(b, errDown)
		time.Sleep(10*time.Second + 1)
		probe := begin(b)
		for range 50 {
			err := call(b, nil)
			var open *OpenError
			if !errors.As(err, &open) || open.RetryAfter() != 0 {
				t.Fatalf("beside the probe: %v, want a refusal without a time", err)
			}
		}
		if got := b.Snapshot(); got.State != HalfOpen || got.Rejected != 50 {
			t.Errorf("beside the probe: %+v, want half-open and 50 rejected", got)
		}
		probe <- nil
		synctest.Wait()
		if err := call(b, nil); err != nil {
			t.Errorf("after the probe: %v", err)
		}
	})
}

func TestResultFromBeforeAChangeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		late := begin(b)
		call(b, errDown)
		call(b, errDown)
		time.Sleep(5 * time.Second)
		late <- errDown // would start the cool-down again
		synctest.Wait()
		if got, want := b.Snapshot().RetryAfter, 5*time.Second; got != want {
			t.Errorf("%v left of the cool-down, want %v", got, want)
		}
		time.Sleep(5*time.Second + 1)
		if err := call(b, nil); err != nil {
			t.Errorf("after the cool-down: %v", err)
		}
	})
}

func TestPanickingProbeFailsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		call(b, errDown)
		call(b, errDown)
		time.Sleep(10*time.Second + 1)
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v, want boom", p)
				}
			}()
			b.Do(func(func() bool) error { panic("boom") })
		}()
		if got := b.Snapshot().State; got != Open {
			t.Errorf("%v after a probe that panicked, want open", got)
		}
		time.Sleep(10*time.Second + 1)
		if err := call(b, nil); err != nil {
			t.Errorf("one cool-down later: %v", err)
		}
	})
}

func TestCallsUnderWayLearnThatItOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		b.Do(func(opened func() bool) error {
			if opened() {
				t.Error("opened before anything failed")
			}
			call(b, errDown)
			call(b, errDown)
			if !opened() {
				t.Error("not opened after 2 failures")
			}
			time.Sleep(10*time.Second + 1)
			call(b, nil)
			if !opened() {
				t.Error("an old call takes the closing for its own")
			}
			return nil
		})
		b.Do(func(opened func() bool) error {
			if opened() {
				t.Error("a new call takes the old opening for its own")
			}
			call(b, errDown)
			call(b, errDown)
			if !opened() {
				t.Error("the second opening is not noticed")
			}
			return nil
		})
	})
}

func TestSnapshotChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		call(b, nil)
		call(b, errDown)
		want := Snapshot{State: Closed, Failures: 1, OpensAfter: 2}
		if got := b.Snapshot(); got != want {
			t.Errorf("closed: %+v, want %+v", got, want)
		}
		call(b, errDown)
		call(b, nil)
		opened := Snapshot{State: Open, OpensAfter: 2, RetryAfter: 10 * time.Second, Transitions: 1, Rejected: 1}
		if got := b.Snapshot(); got != opened {
			t.Errorf("open: %+v, want %+v", got, opened)
		}
		time.Sleep(10 * time.Second)
		want = opened
		want.RetryAfter = 0
		if got := b.Snapshot(); got != want {
			t.Errorf("at the end of the cool-down: %+v, want %+v", got, want)
		}
		time.Sleep(time.Nanosecond)
		want.ProbeDue = true
		for range 3600 {
			if got := b.Snapshot(); got != want {
				t.Fatalf("after the cool-down: %+v, want %+v", got, want)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestRefusalCarriesTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{})
		call(b, errDown)
		call(b, errDown)
		time.Sleep(4 * time.Second)
		err := call(b, nil)
		var open *OpenError
		if !errors.As(err, &open) || open.RetryAfter() != 6*time.Second {
			t.Errorf("%v, want a refusal with 6 s left", err)
		}
		if err.Error() != "circuit open" {
			t.Errorf("text %q", err)
		}
	})
}

func TestErrorOfAnInnerBreakerIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, outer := breaker(t, Config{}), breaker(t, Config{})
		call(inner, errDown)
		call(inner, errDown)
		err := outer.Do(func(func() bool) error { return call(inner, nil) })
		if got := outer.Snapshot(); !errors.Is(err, ErrOpen) || got.Rejected != 0 || got.Failures != 1 {
			t.Errorf("%v, outer %+v, want a failure of the outer", err, got)
		}
	})
}

func TestZeroConfigMeansFiveFailuresThirtySecondsTwoProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			call(b, errDown)
		}
		if got := b.Snapshot().State; got != Closed {
			t.Errorf("%v after 4 failures", got)
		}
		call(b, errDown)
		time.Sleep(30 * time.Second)
		if err := call(b, nil); !errors.Is(err, ErrOpen) {
			t.Errorf("at 30 s: %v, want still open", err)
		}
		time.Sleep(time.Nanosecond)
		call(b, nil)
		if got := b.Snapshot().State; got != HalfOpen {
			t.Errorf("%v after one probe, want half-open", got)
		}
		call(b, nil)
		if got := b.Snapshot().State; got != Closed {
			t.Errorf("%v after two probes, want closed", got)
		}
	})
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		field     string
		bad, good Config
	}{
		{"Failures", Config{Failures: -1}, Config{Failures: math.MaxInt}},
		{"Failures", Config{Failures: 1, FailureRatio: 0.5}, Config{Failures: 1}},
		{"FailureRatio", Config{FailureRatio: -0.1}, Config{FailureRatio: 0.1}},
		{"FailureRatio", Config{FailureRatio: 1.1}, Config{FailureRatio: 1}},
		{"FailureRatio", Config{FailureRatio: nan}, Config{}},
		{"MinCalls", Config{MinCalls: -1}, Config{MinCalls: 1}},
		{"Window", Config{Window: -1}, Config{Window: 1}},
		{"Cooldown", Config{Cooldown: -1}, Config{Cooldown: 1}},
		{"Jitter", Config{Jitter: -0.1}, Config{Jitter: 0.1}},
		{"Jitter", Config{Jitter: 1}, Config{Jitter: 0.99, Cooldown: math.MaxInt64}},
		{"Jitter", Config{Jitter: nan}, Config{}},
		{"Probes", Config{Probes: -1}, Config{Probes: 1}},
		{"Probes", Config{Probes: 1 << 31}, Config{Probes: 1<<31 - 1}},
	} {
		if _, err := New(tt.bad); err == nil || !strings.HasPrefix(err.Error(), "breaker: "+tt.field+" is ") {
			t.Errorf("%+v: %v, want an error that names %s", tt.bad, err, tt.field)
		}
		if _, err := New(tt.good); err != nil {
			t.Errorf("%+v: %v", tt.good, err)
		}
	}
}
