// Package retry repeats a call that failed for a reason that may pass.
//
// Waits grow exponentially up to a cap and are spread over the whole interval
// ("full jitter"), so that callers who failed together do not return together.
// See "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

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
	// Transient says whether another attempt may help after this error.
	// nil means that it always may.
	Transient func(error) bool
	// OnGiveUp is called when a failed call gets no further attempt, with the
	// reason; not when ctx ended it.
	OnGiveUp func(ctx context.Context, reason string, err error)
	// Jitter picks a wait from 0 to ceiling. nil means full jitter: uniform in
	// [0, ceiling]. Tests set it.
	Jitter func(ceiling time.Duration) time.Duration
}

// Retrier repeats calls by one policy. It is safe for concurrent use.
type Retrier struct{ cfg Config }

// New returns a Retrier, or an error that names the field it cannot work with.
func New(cfg Config) (*Retrier, error) {
	switch {
	case cfg.Attempts < 0:
		return nil, fmt.Errorf("retry: Attempts is %d, must not be negative", cfg.Attempts)
	case cfg.Base < 0:
		return nil, fmt.Errorf("retry: Base is %v, must not be negative", cfg.Base)
	case cfg.Cap < 0:
		return nil, fmt.Errorf("retry: Cap is %v, must not be negative", cfg.Cap)
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 4
	}
	if cfg.Base == 0 {
		cfg.Base = 100 * time.Millisecond
	}
	if cfg.Cap == 0 {
		cfg.Cap = 2 * time.Second
	}
	if cfg.Transient == nil {
		cfg.Transient = func(error) bool { return true }
	}
	if cfg.OnGiveUp == nil {
		cfg.OnGiveUp = func(context.Context, string, error) {}
	}
	if cfg.Jitter == nil {
		cfg.Jitter = fullJitter
	}
	return &Retrier{cfg}, nil
}

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

// Do calls fn until it succeeds, and returns its error as it is when there is
// no further attempt: none is left, the error is not transient, stop reports
// true (a nil stop never does), or the next wait would reach ctx's deadline.
//
// A wait is what Jitter picks, added to RetryAfter() of the error if it has
// one: clients that were told the same moment must not return together.
//
// If ctx ends during a wait or an attempt, the error names context.Cause(ctx)
// and the last error before it, if there was one; fn, which is given ctx, must
// return that cause. With a ctx that has already ended, fn is not called.
func (r *Retrier) Do(ctx context.Context, stop func() bool, fn func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if stop == nil {
		stop = func() bool { return false }
	}
	var last error
	for n := 0; ; n++ {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			if last != nil && errors.Is(err, context.Cause(ctx)) {
				return ended(err, last)
			}
			return err
		}
		wait := r.cfg.Jitter(r.ceiling(n))
		wait += min(retryAfter(err), math.MaxInt64-wait) // must not wrap into the past
		if reason := r.giveUpReason(ctx, n, err, wait, stop); reason != "" {
			r.cfg.OnGiveUp(ctx, reason, err)
			return err
		}
		if !sleep(ctx, wait) {
			return ended(context.Cause(ctx), err)
		}
		if stop() {
			r.cfg.OnGiveUp(ctx, stopped, err)
			return err
		}
		last = err
	}
}

const stopped = "stop requested"

// giveUpReason is why attempt n, counted from 0, was the last one; empty if it
// was not.
func (r *Retrier) giveUpReason(ctx context.Context, n int, err error, wait time.Duration, stop func() bool) string {
	deadline, limited := ctx.Deadline()
	switch {
	case !r.cfg.Transient(err):
		return "not transient"
	case n+1 >= r.cfg.Attempts:
		return "no attempt left"
	case stop():
		return stopped
	case limited && wait >= time.Until(deadline):
		return fmt.Sprintf("a wait of %v would reach the deadline", wait)
	}
	return ""
}

func ended(cause, last error) error {
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

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
