// Package retry repeats a call that failed for a reason that may pass.
//
// Waits grow exponentially up to a cap and are spread over the whole interval
// ("full jitter"), so that callers who failed together do not return together.
// See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// ErrDeadline ends a call for good: its deadline has come.
var ErrDeadline = errors.New("total deadline exceeded")

// Config says how often and how patiently a call is repeated.
type Config struct {
	// Attempts is how often the call is made at most, the first time
	// included. 1 never retries; 0 means 4.
	Attempts int
	// Base is the ceiling of the first wait; the ceiling doubles with each
	// further wait, up to Cap. 0 means 100 ms.
	Base time.Duration
	// Cap is the highest ceiling, whatever the attempt. 0 means 2 s.
	Cap time.Duration
	// BudgetShare and BudgetFloor bound the retries of all calls together: those
	// of the last 10 s are at most the larger of BudgetShare for each call of
	// the last 10 s and BudgetFloor for each second, within a fiftieth of that
	// time. Each is at most a million. 0 means 0.2 and 50.
	BudgetShare, BudgetFloor float64
	// Transient says whether another attempt may help after this error.
	// nil means that it always may.
	Transient func(error) bool
	// Jitter picks a wait from 0 to ceiling. nil means full jitter: uniform in
	// [0, ceiling]. Tests set it.
	Jitter func(ceiling time.Duration) time.Duration
}

// OverBudget is the reason to give up when the budget refuses a retry.
const OverBudget = "retry budget spent"

// Retrier repeats calls by one policy. It is safe for concurrent use. Do of a nil one
// makes each call once; it has no other method.
type Retrier struct {
	cfg   Config
	tally atomic.Pointer[tally]
}

// tally is what a Retrier remembers. Reset replaces it: a call keeps the one that it
// began with.
type tally struct {
	calls, attempts, retries atomic.Uint64
	budget                   *budget
}

// New returns a Retrier, or an error that names the field it cannot work with.
func New(cfg Config) (*Retrier, error) {
	switch {
	case cfg.Attempts < 0:
		return nil, fmt.Errorf("retry: Attempts is %d, must not be negative", cfg.Attempts)
	case cfg.Base < 0:
		return nil, fmt.Errorf("retry: Base is %v, must not be negative", cfg.Base)
	case cfg.Cap < 0:
		return nil, fmt.Errorf("retry: Cap is %v, must not be negative", cfg.Cap)
	case !(cfg.BudgetShare >= 0 && cfg.BudgetShare <= maxBudget):
		return nil, fmt.Errorf("retry: BudgetShare is %v, must be 0 to %v retries a call", cfg.BudgetShare, maxBudget)
	case !(cfg.BudgetFloor >= 0 && cfg.BudgetFloor <= maxBudget):
		return nil, fmt.Errorf("retry: BudgetFloor is %v, must be 0 to %v retries a second", cfg.BudgetFloor, maxBudget)
	}
	cfg.Attempts = cmp.Or(cfg.Attempts, 4)
	cfg.Base = cmp.Or(cfg.Base, 100*time.Millisecond)
	cfg.Cap = cmp.Or(cfg.Cap, 2*time.Second)
	cfg.BudgetShare = cmp.Or(cfg.BudgetShare, 0.2)
	cfg.BudgetFloor = cmp.Or(cfg.BudgetFloor, 50)
	if cfg.Transient == nil {
		cfg.Transient = func(error) bool { return true }
	}
	if cfg.Jitter == nil {
		cfg.Jitter = fullJitter
	}
	r := &Retrier{cfg: cfg}
	r.Reset()
	return r, nil
}

// Reset forgets all calls, for the budget as well. Those under way go on and count
// no more.
func (r *Retrier) Reset() {
	r.tally.Store(&tally{budget: newBudget(r.cfg.BudgetShare, r.cfg.BudgetFloor)})
}

// maxBudget is without effect, and far from overflowing an int.
const maxBudget = 1e6

// ceiling is the longest wait after n waits have passed, n from 0:
// min(Cap, Base * 2^n), which never overflows.
func (r *Retrier) ceiling(n int) time.Duration {
	ceiling := r.cfg.Base
	for range n {
		if ceiling > r.cfg.Cap/2 {
			return r.cfg.Cap
		}
		ceiling *= 2
	}
	return min(ceiling, r.cfg.Cap)
}

func fullJitter(ceiling time.Duration) time.Duration {
	if ceiling < math.MaxInt64 {
		ceiling++ // rand.N leaves out its bound, the interval has it
	}
	return rand.N(ceiling)
}

// Call is what is particular to one call. The zero Call has nothing.
type Call struct {
	// Deadline is for all attempts and waits. Zero means none but the context's.
	Deadline time.Time
	// Stop may have a reason against a further attempt. nil never has.
	Stop func() (reason string)
	// Waited is told each wait when it is over, cut short or not. nil ignores it.
	Waited func(time.Duration)
	// GaveUp is told why a failed call gets no further attempt; not when the context or
	// the deadline ended it. nil ignores it.
	GaveUp func(reason string)
}

// Do calls fn until it succeeds, and returns its error as it is when there is
// no further attempt: none is left, the error is not transient, Stop has a
// reason, the next wait would reach the deadline, or the budget is spent.
//
// A wait is what Jitter picks, added to RetryAfter() of the error if it has
// one: clients that were told the same moment must not return together.
//
// An attempt that the deadline ends must return an ErrDeadline; one that ctx ends,
// which fn is given, ctx.Err(). Do's error then also names the last one before it,
// if there was one. Where either has come already, fn is not called.
func (r *Retrier) Do(ctx context.Context, call Call, fn func(context.Context) error) error {
	if err := call.over(ctx); err != nil {
		return err
	}
	if r == nil {
		return fn(ctx)
	}
	if call.Stop == nil {
		call.Stop = func() string { return "" }
	}
	if call.Waited == nil {
		call.Waited = func(time.Duration) {}
	}
	if call.GaveUp == nil {
		call.GaveUp = func(string) {}
	}
	tally := r.tally.Load()
	tally.calls.Add(1)
	tally.budget.call(time.Now())
	var last error
	for n := 0; ; n++ {
		tally.attempts.Add(1)
		err := fn(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrDeadline), ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return ended(err, last)
		case ctx.Err() != nil:
			return err
		}
		wait := r.cfg.Jitter(r.ceiling(n))
		wait += min(retryAfter(err), math.MaxInt64-wait) // must not wrap into the past
		reason := r.giveUpReason(ctx, call, n, err, wait)
		if reason == "" {
			var end error
			if reason, end = pause(ctx, call, tally.budget, wait); end != nil {
				return ended(end, err)
			}
		}
		if reason != "" {
			call.GaveUp(reason)
			return err
		}
		tally.retries.Add(1)
		last = err
	}
}

// giveUpReason is why attempt n, counted from 0, was the last one; empty if it
// was not.
func (r *Retrier) giveUpReason(ctx context.Context, call Call, n int, err error, wait time.Duration) string {
	switch {
	case !r.cfg.Transient(err):
		return "not transient"
	case n+1 >= r.cfg.Attempts:
		return "no attempt left"
	case wait >= call.timeLeft(ctx):
		return fmt.Sprintf("a wait of %v would reach the deadline", wait)
	}
	return call.Stop()
}

// timeLeft is until the deadline or ctx's own, the longest time if there is none.
func (c Call) timeLeft(ctx context.Context) time.Duration {
	left := time.Duration(math.MaxInt64)
	if !c.Deadline.IsZero() {
		left = time.Until(c.Deadline)
	}
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return left
}

// pause waits for the next attempt, which is granted before the wait, so that those
// who wait cannot spend the same budget, and used after it. It returns a reason
// against the attempt, which may come up in the wait, or what has ended the call.
func pause(ctx context.Context, call Call, budget *budget, wait time.Duration) (reason string, end error) {
	begin := time.Now()
	if !budget.grant(begin) {
		return OverBudget, nil
	}
	sleep(ctx, wait)
	call.Waited(time.Since(begin))
	reason = call.Stop()
	end = call.over(ctx)
	if reason != "" || end != nil {
		budget.drop()
		return reason, end
	}
	if !budget.use(time.Now()) {
		return OverBudget, nil
	}
	return "", nil
}

// over is why a call must not go on, if so.
func (c Call) over(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !c.Deadline.IsZero() && !time.Now().Before(c.Deadline):
		return ErrDeadline
	}
	return nil
}

// ended is the error of a call that something else than fn's failure has ended.
func ended(cause, last error) error {
	if last == nil {
		return cause
	}
	return fmt.Errorf("%w; last error: %w", cause, last)
}

// retryAfter is what the error itself asks for, 0 if it does not.
func retryAfter(err error) time.Duration {
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		return asks.RetryAfter()
	}
	return 0
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Snapshot is a retrier at one moment, its counts those since the start or Reset. Taking
// it changes nothing.
type Snapshot struct {
	Calls         uint64 `json:"calls"`
	Attempts      uint64 `json:"attempts"`       // the first ones included
	Retries       uint64 `json:"retries"`        // the attempts that were not the first
	BudgetLeft    int    `json:"budget_left"`    // how many retries the budget would grant now
	BudgetRefused uint64 `json:"budget_refused"` // retries refused
}

// Snapshot reports what was done, and what is left of the budget.
func (r *Retrier) Snapshot() Snapshot {
	t := r.tally.Load()
	s := Snapshot{Calls: t.calls.Load(), Attempts: t.attempts.Load(), Retries: t.retries.Load()}
	s.BudgetLeft, s.BudgetRefused = t.budget.snapshot(time.Now())
	return s
}
