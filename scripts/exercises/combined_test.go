package exercises

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/retry"
)

type callFunc func(context.Context, *breaker.Breaker, *retry.Retrier, func(context.Context) error) error

func checkCall(call callFunc) error {
	b, err1 := breaker.New(breaker.Config{Failures: 3, Cooldown: 10 * time.Second, Probes: 1})
	r, err2 := retry.New(retry.Config{Attempts: 4})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	unavailable := errors.New("503 Service Unavailable")
	attempts := 0
	attempt := func(script string) func(context.Context) error {
		attempts = 0
		return func(context.Context) error {
			attempts++
			if script[(attempts-1)%len(script)] == 'F' {
				return unavailable
			}
			return nil
		}
	}

	if err := call(context.Background(), b, r, attempt("FFFS")); err != nil {
		return fmt.Errorf("FFFS, four attempts: %d are made, and the call gets %q, want success with the fourth", attempts, err)
	}
	if failures := b.Snapshot().Failures; failures != 0 {
		return fmt.Errorf("a call that succeeded at last counts as %d failures", failures)
	}
	for n := range 3 {
		if err := call(context.Background(), b, r, attempt("F")); !errors.Is(err, unavailable) || attempts != 4 {
			return fmt.Errorf("F, call %d: %d attempts and %q, want 4 and %q", n+1, attempts, fmt.Sprint(err), unavailable)
		}
	}
	start := time.Now()
	err := call(context.Background(), b, r, attempt("F"))
	if took := time.Since(start); !errors.Is(err, breaker.ErrOpen) || attempts != 0 || took != 0 {
		return fmt.Errorf("three calls have failed: the next gets %q after %d attempts and %v, want %q at once", fmt.Sprint(err), attempts, took, breaker.ErrOpen)
	}
	if calls := r.Snapshot().Calls; calls != 4 {
		return fmt.Errorf("the retry has made %d calls, want 4", calls)
	}

	// A caller that leaves, and a breaker that opens for others meanwhile.
	b.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start = time.Now()
	err = call(ctx, b, r, func(context.Context) error { attempts++; cancel(); return unavailable })
	if took := time.Since(start); attempts != 1 || took != 0 {
		return fmt.Errorf("the caller leaves during the first attempt: %d are made, and the call ends after %v (%v), want 1 at once", attempts, took, err)
	}
	attempts = 0
	err = call(context.Background(), b, r, func(context.Context) error {
		attempts++
		for range 3 {
			_ = b.Do(func(func() bool) error { return unavailable })
		}
		return unavailable
	})
	if attempts != 1 {
		return fmt.Errorf("the breaker opens for others during the first attempt: %d are made (%v), want 1", attempts, err)
	}
	return nil
}
