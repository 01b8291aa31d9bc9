package retry

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

// retrier has the walkthrough's policy, and waits the whole ceiling.
func retrier(t *testing.T, cfg Config) *Retrier {
	t.Helper()
	if cfg.Jitter == nil {
		cfg.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// failing fails its first n calls with err, and counts them all.
func failing(n int, err error) (fn func(context.Context) error, calls *int) {
	calls = new(int)
	return func(context.Context) error {
		*calls++
		if *calls <= n {
			return err
		}
		return nil
	}, calls
}

func TestCeilingsDoubleUpToTheCap(t *testing.T) {
	r := retrier(t, Config{})
	for n, want := range []time.Duration{100, 200, 400, 800, 1600, 2000, 2000} {
		if got := r.ceiling(n); got != want*time.Millisecond {
			t.Errorf("ceiling %d = %v, want %v", n, got, want*time.Millisecond)
		}
	}
}

func TestCeilingsNeverOverflow(t *testing.T) {
	const most = time.Duration(1<<63 - 1)
	for _, cfg := range []Config{{}, {Base: 1, Cap: most}, {Base: most, Cap: most}, {Base: time.Hour, Cap: time.Second}} {
		r := retrier(t, cfg)
		for n := range 1001 {
			c := r.ceiling(n)
			if c <= 0 || c > r.cfg.Cap {
				t.Fatalf("%v cap %v: ceiling %d = %v, want in (0, cap]", cfg.Base, r.cfg.Cap, n, c)
			}
			if n > 0 && c < r.ceiling(n-1) {
				t.Fatalf("%v: ceiling %d = %v, below the one before", cfg.Base, n, c)
			}
		}
	}
}

func TestFullJitterFillsTheWholeInterval(t *testing.T) {
	const ceiling = 100 * time.Millisecond
	var thirds [3]int
	for range 3000 {
		d := fullJitter(ceiling)
		if d < 0 || d > ceiling {
			t.Fatalf("jitter %v, want in [0, %v]", d, ceiling)
		}
		thirds[min(2, d*3/ceiling)]++
	}
	for i, n := range thirds {
		if n < 800 { // 1000 expected; 800 is 7 standard deviations off
			t.Errorf("third %d of the interval got %d of 3000 waits", i, n)
		}
	}
	if d := fullJitter(0); d != 0 {
		t.Errorf("jitter of a ceiling of 0 = %v", d)
	}
	if d := fullJitter(math.MaxInt64); d < 0 {
		t.Errorf("jitter of the highest ceiling = %v", d)
	}
}

func TestTransientErrorIsRetriedUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(2, errDown)
		start := time.Now()
		if err := retrier(t, Config{}).Do(t.Context(), Call{}, fn); err != nil {
			t.Errorf("Do = %v", err)
		}
		if *calls != 3 {
			t.Errorf("%d calls, want 3", *calls)
		}
		if took, want := time.Since(start), 300*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestPermanentErrorIsNotRetried(t *testing.T) {
	fn, calls := failing(9, errDown)
	r := retrier(t, Config{Transient: func(error) bool { return false }})
	if err := r.Do(t.Context(), Call{}, fn); err != errDown {
		t.Errorf("Do = %v, want %v", err, errDown)
	}
	if *calls != 1 {
		t.Errorf("%d calls, want 1", *calls)
	}
}

func TestGivesUpAfterItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(9, errDown)
		if err := retrier(t, Config{}).Do(t.Context(), Call{}, fn); err != errDown {
			t.Errorf("Do = %v, want %v", err, errDown)
		}
		if *calls != 4 {
			t.Errorf("%d calls, want 4", *calls)
		}
	})
}

func TestOneAttemptNeverRetries(t *testing.T) {
	fn, calls := failing(9, errDown)
	if err := retrier(t, Config{Attempts: 1}).Do(t.Context(), Call{}, fn); err != errDown || *calls != 1 {
		t.Errorf("Do = %v after %d calls, want %v after 1", err, *calls, errDown)
	}
}

type askingError time.Duration

func (askingError) Error() string               { return "ask me later" }
func (e askingError) RetryAfter() time.Duration { return time.Duration(e) }

func TestWaitIsAddedToWhatTheErrorAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, _ := failing(1, askingError(2*time.Second))
		start := time.Now()
		if err := retrier(t, Config{}).Do(t.Context(), Call{}, fn); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(start), 2100*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestStopEndsTheRetries(t *testing.T) {
	for _, tt := range []struct {
		name      string
		stopAfter int // calls of stop that report false
		took      time.Duration
	}{
		{"before a wait", 0, 0},
		{"after a wait", 1, 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				stop := func() string {
					if asked++; asked > tt.stopAfter {
						return "enough"
					}
					return ""
				}
				fn, calls := failing(9, errDown)
				start := time.Now()
				if err := retrier(t, Config{}).Do(t.Context(), Call{Stop: stop}, fn); err != errDown {
					t.Errorf("Do = %v, want %v", err, errDown)
				}
				if took := time.Since(start); *calls != 1 || took != tt.took {
					t.Errorf("%d calls in %v, want 1 in %v", *calls, took, tt.took)
				}
			})
		})
	}
}

func TestGaveUpSaysWhy(t *testing.T) {
	enough := func() string { return "enough" }
	permanent := func(error) bool { return false }
	second := func(stop func() string) func() string {
		asked := false
		return func() string {
			if !asked {
				asked = true
				return ""
			}
			return stop()
		}
	}
	for _, tt := range []struct {
		cfg  Config
		stop func() string
		err  error
		want string
	}{
		{Config{Attempts: 1}, nil, errDown, "no attempt left"},
		{Config{Transient: permanent}, nil, errDown, "not transient"},
		{Config{}, enough, errDown, "enough"},
		{Config{Base: 1}, second(enough), errDown, "enough"}, // after the wait
		{Config{}, nil, askingError(time.Hour), "a wait of 1h0m0.1s would reach the deadline"},
	} {
		var got string
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		fn, _ := failing(9, tt.err)
		err := retrier(t, tt.cfg).Do(ctx, Call{Stop: tt.stop, GaveUp: func(reason string) { got = reason }}, fn)
		if got != tt.want || err != tt.err {
			t.Errorf("reason %q with %v, want %q with %v", got, err, tt.want, tt.err)
		}
	}
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Attempts": {Attempts: -1}, "Base": {Base: -1}, "Cap": {Cap: -1},
		"BudgetShare": {BudgetShare: -1}, "BudgetShare ": {BudgetShare: math.NaN()}, "BudgetShare  ": {BudgetShare: 1e6 + 1},
		"BudgetFloor": {BudgetFloor: -1}, "BudgetFloor ": {BudgetFloor: math.NaN()}, "BudgetFloor  ": {BudgetFloor: 1e6 + 1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) {
			t.Errorf("%s out of range: %v, want an error that names it", field, err)
		}
	}
}
