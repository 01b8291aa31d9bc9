package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoAttemptWhenTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn, calls := failing(0, nil)
	if err := retrier(t, Config{}).Do(ctx, Call{}, fn); !errors.Is(err, context.Canceled) || *calls != 0 {
		t.Errorf("Do = %v after %d calls, want %v after 0", err, *calls, context.Canceled)
	}
}

func TestCancelEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		fn, calls := failing(9, errDown)
		start := time.Now()
		err := retrier(t, Config{}).Do(ctx, Call{}, fn)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) {
			t.Errorf("Do = %v, want both the cancellation and the last error", err)
		}
		if took := time.Since(start); took != 30*time.Millisecond || *calls != 1 {
			t.Errorf("%d calls in %v, want 1 in 30ms", *calls, took)
		}
	})
}

func TestDeadline(t *testing.T) {
	errLate := fmt.Errorf("%w after a while", ErrDeadline)
	// The first wait is 100 ms, so a second attempt needs more than that.
	for _, tt := range []struct {
		name    string
		left    time.Duration
		attempt time.Duration
		calls   int
		took    time.Duration
		want    string
	}{
		{"a wait that reaches it is not begun", 100 * time.Millisecond, 0, 1, 0, "down"},
		{"a wait that fits is", 100*time.Millisecond + 1, 0, 2, 100 * time.Millisecond, "down"},
		{"an attempt that it ends names both", 250 * time.Millisecond, 80 * time.Millisecond, 2, 250 * time.Millisecond, "total deadline exceeded after a while; last error: down"},
		{"a first attempt that it ends has nothing else to name", 50 * time.Millisecond, 80 * time.Millisecond, 1, 50 * time.Millisecond, "total deadline exceeded after a while"},
		{"one that has come allows no attempt", 0, 0, 0, 0, "total deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				start := time.Now()
				deadline := start.Add(tt.left)
				err := retrier(t, Config{}).Do(t.Context(), Call{Deadline: deadline}, func(ctx context.Context) error {
					ctx, cancel := context.WithDeadlineCause(ctx, deadline, errLate)
					defer cancel()
					calls++
					// The second attempt takes longer than is left.
					if sleep(ctx, tt.attempt*time.Duration(calls*calls)); ctx.Err() != nil {
						return context.Cause(ctx)
					}
					return errDown
				})
				if err == nil || err.Error() != tt.want {
					t.Errorf("Do = %v, want %v", err, tt.want)
				}
				if took := time.Since(start); calls != tt.calls || took != tt.took {
					t.Errorf("%d calls in %v, want %d in %v", calls, took, tt.calls, tt.took)
				}
			})
		})
	}
}

// A slow stop, or a late timer, must not let an attempt start after the deadline.
func TestNoAttemptAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		stop := func() string {
			if asked++; asked == 2 {
				time.Sleep(time.Second)
			}
			return ""
		}
		fn, calls := failing(9, errDown)
		err := retrier(t, Config{}).Do(t.Context(), Call{Deadline: time.Now().Add(time.Second), Stop: stop}, fn)
		if want := "total deadline exceeded; last error: down"; err == nil || err.Error() != want || *calls != 1 {
			t.Errorf("Do = %v after %d calls, want %s after 1", err, *calls, want)
		}
	})
}

// Of several errors the last one is named.
func TestDeadlineNamesTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		deadline := time.Now().Add(400 * time.Millisecond)
		err := retrier(t, Config{}).Do(t.Context(), Call{Deadline: deadline}, func(ctx context.Context) error {
			if calls++; calls == 3 {
				time.Sleep(time.Until(deadline))
				return ErrDeadline
			}
			return fmt.Errorf("error %d", calls)
		})
		if want := "total deadline exceeded; last error: error 2"; err == nil || err.Error() != want {
			t.Errorf("Do = %v, want %s", err, want)
		}
	})
}

// The caller leaves and the wait ends in the same instant.
func TestNoAttemptOnceTheCallerHasLeft(t *testing.T) {
	for range 100 { // as select draws
		ctx, cancel := context.WithCancel(t.Context())
		r := retrier(t, Config{Jitter: func(time.Duration) time.Duration { cancel(); return 0 }})
		fn, calls := failing(9, errDown)
		if err := r.Do(ctx, Call{}, fn); !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) || *calls != 1 {
			t.Fatalf("Do = %v after %d calls, want both errors after 1", err, *calls)
		}
		if got := r.Snapshot(); got.BudgetLeft != 500 || got.Retries != 0 {
			t.Fatalf("%+v, want nothing spent", got)
		}
	}
}

// An attempt that fails by itself in the moment in which the caller leaves is what
// it is.
func TestRealErrorOfTheLastAttemptStays(t *testing.T) {
	for last := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := false
		r := retrier(t, Config{Base: 1})
		calls := 0
		err := r.Do(ctx, Call{GaveUp: func(string) { gaveUp = true }}, func(context.Context) error {
			if calls == last {
				cancel()
			}
			calls++
			return errDown
		})
		if err != errDown || gaveUp || calls != last+1 {
			t.Errorf("Do = %v after %d calls, gave up %v, want %v, and that the caller ended it", err, calls, gaveUp, errDown)
		}
		cancel()
	}
}

// A caller that will be gone by then ends the retries too.
func TestTheEarlierOfTwoDeadlinesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 100 * time.Millisecond
		for _, tt := range []struct {
			ctx, deadline time.Duration
			calls         int
		}{{wait, time.Hour, 1}, {wait + 1, time.Hour, 2}, {time.Hour, wait, 1}, {time.Hour, wait + 1, 2}} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.ctx)
			defer cancel()
			fn, calls := failing(9, errDown)
			if err := retrier(t, Config{}).Do(ctx, Call{Deadline: time.Now().Add(tt.deadline)}, fn); err != errDown || *calls != tt.calls {
				t.Errorf("Do = %v after %d calls, want %v after %d", err, *calls, errDown, tt.calls)
			}
		}
	})
}

// The sum must not wrap into the past.
func TestTheLongestWaitThatCanBeAskedForEndsTheRetries(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	fn, calls := failing(9, askingError(math.MaxInt64))
	if err := retrier(t, Config{}).Do(ctx, Call{}, fn); err != askingError(math.MaxInt64) || *calls != 1 {
		t.Errorf("Do = %v after %d calls, want the first error after 1", err, *calls)
	}
}
