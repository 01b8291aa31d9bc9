package retry

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// storm makes calls that fail for good and returns how many retries that made.
func storm(r *Retrier, calls int) (retries uint64) {
	before := r.Snapshot().Retries
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { r.Do(context.Background(), Call{}, func(context.Context) error { return errDown }) })
	}
	all.Wait()
	return r.Snapshot().Retries - before
}

func TestBudgetIsTheLargerOfShareAndFloor(t *testing.T) {
	for _, tt := range []struct {
		share, floor float64
		calls        int
		want         uint64
	}{
		{0, 0, 100, 300},       // the floor of 50 a second: every retry of a policy of 4 attempts
		{0, 0, 1000, 500},      // and no more than that
		{0, 0, 10_000, 2000},   // a share of 0.2
		{0.2, 0.001, 4, 0},     // 0.8 of a retry is none
		{0.2, 0.001, 5, 1},     // both sides of a whole one
		{0.29, 0.001, 100, 29}, // 0.29 * 100 is a little less in floating point
		{0.001, 2, 100, 20},
		{3, 0.001, 100, 300}, // as good as no budget
		{0.001, 0.001, 100, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := retrier(t, Config{BudgetShare: tt.share, BudgetFloor: tt.floor})
			if got := storm(r, tt.calls); got != tt.want {
				t.Errorf("share %v, floor %v: %d calls made %d retries, want %d", tt.share, tt.floor, tt.calls, got, tt.want)
			}
		})
	}
}

func TestBudgetComesBackAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := retrier(t, Config{BudgetFloor: 1, BudgetShare: 0.001, Base: time.Millisecond, Attempts: 2})
		for _, row := range []struct {
			at   time.Duration
			want uint64
			left int
		}{
			{0, 10, 0},
			{time.Second, 0, 0},
			{10 * time.Second, 0, 0},
			{10*time.Second + 400*time.Millisecond, 10, 0}, // forgotten within a fiftieth more
		} {
			time.Sleep(row.at - time.Since(start))
			if got := storm(r, 20); got != row.want {
				t.Errorf("at %v: %d retries, want %d", row.at, got, row.want)
			}
			if got := r.Snapshot().BudgetLeft; got != row.left {
				t.Errorf("at %v: %d left, want %d", row.at, got, row.left)
			}
		}
	})
}

func TestRefusedRetryReturnsTheErrorAndIsCounted(t *testing.T) {
	synctest.Test(t, refusedRetry)
}

func refusedRetry(t *testing.T) {
	reason, start := "", time.Now()
	r := retrier(t, Config{BudgetFloor: 0.001, BudgetShare: 0.001})
	fn, calls := failing(9, errDown)
	if err := r.Do(t.Context(), Call{GaveUp: func(why string) { reason = why }}, fn); err != errDown || *calls != 1 {
		t.Errorf("Do = %v after %d calls, want %v after 1", err, *calls, errDown)
	}
	if want := (Snapshot{Calls: 1, Attempts: 1, BudgetRefused: 1}); r.Snapshot() != want {
		t.Errorf("%+v, want %+v", r.Snapshot(), want)
	}
	if took := time.Since(start); reason != "retry budget spent" || took != 0 {
		t.Errorf("reason %q after %v, want one at once", reason, took)
	}
}

func TestSnapshotCountsCallsAttemptsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retrier(t, Config{})
		for range 2 {
			fn, _ := failing(2, errDown)
			if err := r.Do(t.Context(), Call{}, fn); err != nil {
				t.Fatal(err)
			}
		}
		if want := (Snapshot{Calls: 2, Attempts: 6, Retries: 4, BudgetLeft: 496}); r.Snapshot() != want {
			t.Errorf("%+v, want %+v", r.Snapshot(), want)
		}
	})
}

// A retry that is not made, since the caller left or stop said so, gives its
// grant back.
func TestRetryThatIsNotMadeIsNotSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retrier(t, Config{BudgetFloor: 0.1, BudgetShare: 0.001})
		ctx, cancel := context.WithCancel(t.Context())
		fn, _ := failing(9, errDown)
		done := make(chan error)
		go func() { done <- r.Do(ctx, Call{}, fn) }()
		synctest.Wait()
		if got := r.Snapshot().BudgetLeft; got != 0 {
			t.Errorf("%d left during the wait, want 0", got)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Do = %v", err)
		}
		asked := 0
		r.Do(t.Context(), Call{Stop: func() string { asked++; return strings.Repeat("enough", asked-1) }}, fn)
		if got := r.Snapshot(); got.BudgetLeft != 1 || got.Retries != 0 {
			t.Errorf("%+v, want 1 left and no retry", got)
		}
	})
}

// Grants that wait for long must not let through more later on.
func TestWaitingRetriesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retrier(t, Config{
			Attempts: 2, Base: time.Nanosecond, BudgetFloor: 1, BudgetShare: 0.001,
		})
		asking := func(wait time.Duration) {
			r.Do(t.Context(), Call{}, func(context.Context) error { return askingError(wait) })
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { asking(15 * time.Second) })
		}
		time.Sleep(12 * time.Second)
		asking(0)
		all.Wait()
		if got := r.Snapshot(); got.Retries != 10 || got.BudgetRefused != 1 {
			t.Errorf("%+v, want 10 retries and 1 refused", got)
		}
	})
}

// Calls grow old as retries do, and a grant that outlasts its calls is void.
func TestShareIsOfTheCallsOfTheLastTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := retrier(t, Config{Base: 1, Cap: 1, BudgetFloor: 0.001, BudgetShare: 0.2})
		ask := func(after time.Duration) {
			r.Do(t.Context(), Call{}, func(context.Context) error { return askingError(after) })
		}
		r.Do(t.Context(), Call{}, func(context.Context) error { return nil })
		for _, row := range []struct {
			at    time.Duration
			calls int
			want  uint64
		}{
			{time.Millisecond, 1, 0},
			{20 * time.Second, 100, 20},
			{30100 * time.Millisecond, 7, 1}, // 0.2 of 107, of which 20 are made
			{40300 * time.Millisecond, 7, 1},
		} {
			time.Sleep(row.at - time.Since(start))
			if got := storm(r, row.calls); got != row.want {
				t.Errorf("at %v: %d retries, want %d", row.at, got, row.want)
			}
		}
		time.Sleep(time.Minute)
		before := r.Snapshot()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { ask(15 * time.Second) })
		}
		all.Wait()
		after := r.Snapshot()
		if made, refused := after.Retries-before.Retries, after.BudgetRefused-before.BudgetRefused; made != 0 || refused != 100 || after.BudgetLeft != 0 {
			t.Errorf("%d retries made and %d refused, %+v, want none made: no call is less than 10s old", made, refused, after)
		}
	})
}

// Retries may be younger than the calls that they were granted for.
func TestBudgetLeftIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retrier(t, Config{Base: 1, Cap: 1, BudgetFloor: 0.001, BudgetShare: 0.2})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				r.Do(t.Context(), Call{}, func(context.Context) error { return askingError(5 * time.Second) })
			})
		}
		time.Sleep(10300 * time.Millisecond)
		all.Wait()
		if got := r.Snapshot(); got.BudgetLeft != 0 || got.Retries != 20 {
			t.Errorf("%+v, want 20 retries, and none left", got)
		}
	})
}
