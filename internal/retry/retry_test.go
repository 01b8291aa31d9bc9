package retry

import (
	"context"
	"errors"
	"fmt"
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
		if err := retrier(t, Config{}).Do(t.Context(), time.Time{}, nil, fn); err != nil {
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
	if err := r.Do(t.Context(), time.Time{}, nil, fn); err != errDown {
		t.Errorf("Do = %v, want %v", err, errDown)
	}
	if *calls != 1 {
		t.Errorf("%d calls, want 1", *calls)
	}
}

func TestGivesUpAfterItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(9, errDown)
		if err := retrier(t, Config{}).Do(t.Context(), time.Time{}, nil, fn); err != errDown {
			t.Errorf("Do = %v, want %v", err, errDown)
		}
		if *calls != 4 {
			t.Errorf("%d calls, want 4", *calls)
		}
	})
}

func TestOneAttemptNeverRetries(t *testing.T) {
	fn, calls := failing(9, errDown)
	if err := retrier(t, Config{Attempts: 1}).Do(t.Context(), time.Time{}, nil, fn); err != errDown || *calls != 1 {
		t.Errorf("Do = %v after %d calls, want %v after 1", err, *calls, errDown)
	}
}

func TestNoAttemptWhenTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fn, calls := failing(0, nil)
	if err := retrier(t, Config{}).Do(ctx, time.Time{}, nil, fn); !errors.Is(err, context.Canceled) || *calls != 0 {
		t.Errorf("Do = %v after %d calls, want %v after 0", err, *calls, context.Canceled)
	}
}

func TestCancelEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		fn, calls := failing(9, errDown)
		start := time.Now()
		err := retrier(t, Config{}).Do(ctx, time.Time{}, nil, fn)
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
				err := retrier(t, Config{}).Do(t.Context(), deadline, nil, func(ctx context.Context) error {
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
		err := retrier(t, Config{}).Do(t.Context(), time.Now().Add(time.Second), stop, fn)
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
		err := retrier(t, Config{}).Do(t.Context(), deadline, nil, func(ctx context.Context) error {
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

// Whether the caller leaves during a wait or in the instant of its end.
func TestNoAttemptOnceTheCallerHasLeft(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("gone")
			fn, calls := failing(9, errDown)
			time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
			r := retrier(t, Config{})
			if err := r.Do(ctx, time.Time{}, nil, fn); *calls != 1 && ctx.Err() == nil {
				t.Fatalf("Do = %v after %d calls", err, *calls)
			}
			ctx, cancel = context.WithCancelCause(t.Context())
			r = retrier(t, Config{Jitter: func(time.Duration) time.Duration { cancel(gone); return 0 }})
			fn, calls = failing(9, errDown)
			if err := r.Do(ctx, time.Time{}, nil, fn); !errors.Is(err, context.Canceled) || !errors.Is(err, errDown) || *calls != 1 {
				t.Fatalf("Do = %v after %d calls, want both errors after 1", err, *calls)
			}
			if got := r.Snapshot(); got.BudgetLeft != 500 || got.Retries != 0 {
				t.Fatalf("%+v, want nothing spent", got)
			}
		})
	}
}

// An attempt that fails by itself in the moment in which the caller leaves is what
// it is.
func TestRealErrorOfTheLastAttemptStays(t *testing.T) {
	for last := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := false
		r := retrier(t, Config{Base: 1, OnGiveUp: func(context.Context, string, error) { gaveUp = true }})
		calls := 0
		err := r.Do(ctx, time.Time{}, nil, func(context.Context) error {
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

type askingError time.Duration

func (askingError) Error() string               { return "ask me later" }
func (e askingError) RetryAfter() time.Duration { return time.Duration(e) }

func TestWaitIsAddedToWhatTheErrorAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, _ := failing(1, askingError(2*time.Second))
		start := time.Now()
		if err := retrier(t, Config{}).Do(t.Context(), time.Time{}, nil, fn); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(start), 2100*time.Millisecond; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

// A caller that will be gone by then counts as well.
func TestDeadlineOfTheContextEndsTheRetriesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			left  time.Duration
			calls int
		}{{100 * time.Millisecond, 1}, {100*time.Millisecond + 1, 2}} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.left)
			defer cancel()
			fn, calls := failing(9, errDown)
			if err := retrier(t, Config{}).Do(ctx, time.Now().Add(time.Hour), nil, fn); err != errDown || *calls != tt.calls {
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
	if err := retrier(t, Config{}).Do(ctx, time.Time{}, nil, fn); err != askingError(math.MaxInt64) || *calls != 1 {
		t.Errorf("Do = %v after %d calls, want the first error after 1", err, *calls)
	}
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
				if err := retrier(t, Config{}).Do(t.Context(), time.Time{}, stop, fn); err != errDown {
					t.Errorf("Do = %v, want %v", err, errDown)
				}
				if took := time.Since(start); *calls != 1 || took != tt.took {
					t.Errorf("%d calls in %v, want 1 in %v", *calls, took, tt.took)
				}
			})
		})
	}
}

func TestOnGiveUpSaysWhy(t *testing.T) {
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
		tt.cfg.OnGiveUp = func(_ context.Context, reason string, err error) {
			got = reason
			if err != tt.err {
				t.Errorf("%s: %v, want %v", reason, err, tt.err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		fn, _ := failing(9, tt.err)
		retrier(t, tt.cfg).Do(ctx, time.Time{}, tt.stop, fn)
		if got != tt.want {
			t.Errorf("reason %q, want %q", got, tt.want)
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
