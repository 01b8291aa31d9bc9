package breaker

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestResetClosesAndCallsUnderWayHaveNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		b := breaker(t, Config{OnTransition: func(tr Transition) { told = append(told, fmt.Sprintf("%s>%s", tr.From, tr.To)) }})
		early := begin(b) // admitted while closed
		call(b, errDown)
		call(b, errDown)
		call(b, nil)
		b.Reset()
		want := Snapshot{State: Closed, OpensAfter: 2}
		if got := b.Snapshot(); got != want {
			t.Errorf("reset: %+v, want %+v", got, want)
		}
		b.Reset() // of what is closed: nothing to tell
		early <- errDown
		synctest.Wait()
		if got := b.Snapshot(); got != want {
			t.Errorf("after a failure from before: %+v, want %+v", got, want)
		}
		call(b, errDown)
		call(b, errDown)

		time.Sleep(10*time.Second + time.Nanosecond)
		probe := begin(b)
		b.Reset()
		call(b, errDown)
		probe <- nil // would have closed it
		synctest.Wait()
		if got := b.Snapshot(); got.State != Closed || got.Failures != 1 {
			t.Errorf("after a probe from before: %+v, want one failure", got)
		}
		if want := []string{"closed>open", "open>closed", "closed>open", "open>half_open", "half_open>closed"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// Whoever resets at the same time as others call and reset: each change is told once,
// and the next begins where the last ended.
func TestTransitionsAreAChainAcrossResets(t *testing.T) {
	var told []Transition // OnTransition is called one at a time
	b := breaker(t, Config{Cooldown: time.Nanosecond, OnTransition: func(tr Transition) { told = append(told, tr) }})
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for n := range 2000 {
				switch {
				case i < 2:
					b.Reset()
				case n%7 == 0:
					call(b, nil)
				default:
					call(b, errDown)
				}
			}
		})
	}
	all.Wait()
	state := Closed
	for i, tr := range told {
		if tr.From != state {
			t.Fatalf("change %d of %d is from %s, and it was %s", i, len(told), tr.From, state)
		}
		state = tr.To
	}
	if got := b.Snapshot().State; got != state || len(told) == 0 {
		t.Errorf("%s in the end, and told %s", got, state)
	}
}

// A refusal of a machine that a reset has replaced is none: it is never passed on, and
// never counted.
func TestRefusalsFromBeforeAResetDoNotCount(t *testing.T) {
	for range 20_000 { // it takes some to meet the moment
		b := breaker(t, Config{Failures: 1, Cooldown: time.Hour})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 3 {
					var open *OpenError
					err := b.Do(func(func() bool) error { runtime.Gosched(); return errDown })
					if errors.As(err, &open) && open == nil {
						t.Error("a refusal that is nil")
					}
				}
			})
		}
		for range 3 {
			all.Go(func() {
				for range 4 {
					b.Reset()
				}
			})
		}
		all.Wait()
		if s := b.Snapshot(); s.Transitions == 0 && s.Rejected > 0 {
			t.Fatalf("refused without having opened: %+v", s)
		}
	}
}

func TestResetForgetsTheFailuresOfAClosedBreaker(t *testing.T) {
	for _, cfg := range []Config{{Failures: 2}, {FailureRatio: 1, MinCalls: 2}} {
		b, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		call(b, errDown)
		b.Reset()
		if got := b.Snapshot(); got.Failures != 0 || got.Calls != 0 {
			t.Errorf("%+v after a reset", got)
		}
		call(b, errDown)
		if got := b.Snapshot(); got.State != Closed {
			t.Errorf("%s after one failure", got.State)
		}
	}
}

// It opened after the call was admitted, if only after a reset.
func TestOpenedAcrossAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{Failures: 1})
		call(b, errDown)
		time.Sleep(10*time.Second + time.Nanosecond)
		call(b, nil)
		b.Do(func(opened func() bool) error {
			b.Reset()
			if opened() {
				t.Error("opened by a reset")
			}
			call(b, errDown)
			if !opened() {
				t.Error("not opened")
			}
			return nil
		})
	})
}

// A slow OnTransition does not let the next one overtake it.
func TestTransitionsKeepTheirOrderAcrossAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		b := breaker(t, Config{Failures: 1, OnTransition: func(tr Transition) {
			if len(told) == 0 {
				time.Sleep(time.Second)
			}
			told = append(told, fmt.Sprintf("%s>%s", tr.From, tr.To))
		}})
		go call(b, errDown)
		synctest.Wait()
		b.Reset()
		call(b, errDown)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"closed>open", "open>closed", "closed>open"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// Jitter is drawn once.
func TestResetKeepsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker(t, Config{Failures: 1, Jitter: 0.9})
		call(b, errDown)
		want := b.Snapshot().RetryAfter
		b.Reset()
		call(b, errDown)
		if got := b.Snapshot().RetryAfter; got != want {
			t.Errorf("open for %v, want %v", got, want)
		}
	})
}

func TestNilLetsEveryCallPass(t *testing.T) {
	var none *Breaker
	for range 10 {
		if err := call(none, errDown); err != errDown {
			t.Errorf("%v, want %v", err, errDown)
		}
	}
	none.Do(func(opened func() bool) error {
		if opened() {
			t.Error("opened")
		}
		return nil
	})
}
