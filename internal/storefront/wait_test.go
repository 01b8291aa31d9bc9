package storefront

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
)

func TestCheckoutMayWaitForAPermit(t *testing.T) {
	for _, tt := range []struct {
		wait time.Duration
		want string
		took time.Duration
	}{
		{500*time.Millisecond + 1, "200 {}", 750 * time.Millisecond},
		{500*time.Millisecond - 1, "503 bulkhead full", 500*time.Millisecond - 1},
	} {
		cfg := Config{FlakyURL: dependencyURL}
		cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: tt.wait}
		inBubble(t, cfg, func(w *world) {
			calls := 0
			w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
				calls++
				takes(500*time.Millisecond/time.Duration(calls))(rw, r)
			})
			first := w.begin(w.Context(), "/checkout")
			w.want(w.get("/checkout"), tt.want)
			if took := time.Since(w.start); took != tt.took {
				w.Errorf("a wait of %v: took %v, want %v", tt.wait, took, tt.took)
			}
			w.want(<-first, "200 {}")
		})
	}
}

// However long callers wait for a permit, each call has its whole time, and the
// breaker of a dependency in good health stays closed.
func TestWaitForAPermitIsNotTheDependencysFault(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: 10 * time.Second}
	inBubble(t, cfg, func(w *world) {
		d := w.serveDependency(takes(700 * time.Millisecond))
		var callers []<-chan answer
		for range 20 {
			callers = append(callers, w.begin(w.Context(), "/checkout"))
		}
		ctx, hangUp := context.WithCancel(w.Context())
		w.begin(ctx, "/checkout")
		hangUp()
		got := map[string]int{}
		for _, c := range callers {
			got[(<-c).String()]++
		}
		want := map[string]int{"200 {}": 15, "503 bulkhead full": 5} // 15 x 700 ms is the first past 10 s
		if fmt.Sprint(got) != fmt.Sprint(want) || d.requests.Load() != 15 {
			w.Errorf("%v with %d requests, want %v with 15", got, d.requests.Load(), want)
		}
		s := w.snapshot(flaky)
		if s.Bulkhead.InUse != 0 || s.Bulkhead.Waiting != 0 || s.Bulkhead.Rejected != 5 || s.Breaker.Failures != 0 {
			w.Errorf("%+v, want nothing in use, 5 rejected and no failure", s)
		}
	})
}

func TestLongWaitsForAPermitStillGetTheirAnswer(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: time.Minute}
	cfg.Flaky.Timeout, cfg.Flaky.Deadline = time.Minute, time.Minute
	inBubble(t, cfg, func(w *world) {
		w.serveDependency(takes(50 * time.Second))
		first := w.begin(w.Context(), "/checkout")
		w.want(w.get("/checkout"), "200 {}")
		w.want(<-first, "200 {}")
	})
}

// The caller leaves, with a cause of its own, while it waits: for a permit, or for
// the next attempt.
func TestCallersThatLeaveInAWaitAreNeutral(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: time.Minute}
	cfg.Flaky.Breaker.Failures = 1
	cfg.Flaky.Retry.Jitter = func(time.Duration) time.Duration { return 2 * time.Second }
	inBubble(t, cfg, func(w *world) {
		w.serveDependency(status(503))
		ctx, leave := context.WithCancelCause(w.Context())
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := w.service.dependencies[flaky].Do(withLocalAddr(ctx, w.network.Addr("127.0.0.1:3000")), dependency.Request{URL: dependencyURL})
				errs <- err
			}()
		}
		time.Sleep(time.Second)
		leave(errors.New("another part of the work has failed"))
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				w.Errorf("got %v, want %v", err, context.Canceled)
			}
		}
		if got := w.snapshot(flaky); got.Breaker.State != breaker.Closed || got.Breaker.Failures != 0 || got.Bulkhead.InUse != 0 {
			w.Errorf("%+v, want closed without a failure", got)
		}
	})
}
