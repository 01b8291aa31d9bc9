package retry

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestResetFillsTheBudgetAndForgetsTheCounts(t *testing.T) {
	r := retrier(t, Config{Base: time.Microsecond, BudgetFloor: 0.1, BudgetShare: 0.001})
	fn, _ := failing(9, errDown)
	r.Do(t.Context(), Call{}, fn)
	if got, want := r.Snapshot(), (Snapshot{Calls: 1, Attempts: 2, Retries: 1, BudgetRefused: 1}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	r.Reset()
	if got, want := r.Snapshot(), (Snapshot{BudgetLeft: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A call under way goes on by what it was granted, and counts no more.
func TestResetDuringACall(t *testing.T) {
	r := retrier(t, Config{Base: time.Microsecond, BudgetFloor: 0.2, BudgetShare: 0.001})
	calls := 0
	err := r.Do(t.Context(), Call{Waited: func(time.Duration) { r.Reset() }}, func(context.Context) error {
		calls++
		return errDown
	})
	if err != errDown || calls != 3 {
		t.Errorf("%v after %d attempts, want the three that the budget it began with has", err, calls)
	}
	if got, want := r.Snapshot(), (Snapshot{BudgetLeft: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNilMakesEachCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *Retrier
		fn, calls := failing(9, errDown)
		if err := none.Do(t.Context(), Call{}, fn); err != errDown || *calls != 1 {
			t.Errorf("%v after %d calls, want %v after 1", err, *calls, errDown)
		}
		if err := none.Do(t.Context(), Call{Deadline: time.Now()}, fn); err != ErrDeadline || *calls != 1 {
			t.Errorf("at the deadline: %v after %d calls, want %v after no further one", err, *calls, ErrDeadline)
		}
	})
}

// Waited is told the wait as it was, also one that was cut short.
func TestWaitedIsToldEachWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		asked := 0
		stop := func() string {
			if asked++; asked > 3 { // before and after each wait
				return "enough"
			}
			return ""
		}
		fn, _ := failing(9, errDown)
		waited := func(d time.Duration) { waits = append(waits, d) }
		retrier(t, Config{}).Do(t.Context(), Call{Stop: stop, Waited: waited}, fn)
		if want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}; !slices.Equal(waits, want) {
			t.Errorf("waits of %v, want %v", waits, want)
		}

		waits = nil
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, leave)
		retrier(t, Config{}).Do(gone, Call{Waited: waited}, fn)
		if want := []time.Duration{30 * time.Millisecond}; !slices.Equal(waits, want) {
			t.Errorf("cut short: waits of %v, want %v", waits, want)
		}
	})
}
