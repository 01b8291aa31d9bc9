package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/storefront"
)

// hangingDependency has the dependency of /checkout hang, and looks at the other routes.
func hangingDependency(ctx context.Context, w io.Writer, step time.Duration) error {
	const checkouts, others = 150, 200 // a second
	cfg := storefront.Config{MaxInFlight: 256, LimitBurst: 1000, LimitRate: 1000}
	fmt.Fprintf(w, "\nThe dependency of /checkout hangs: %d checkouts a second, and %d other requests; at most %d at once\n", checkouts, others, cfg.MaxInFlight)
	var throughput []float64
	for _, run := range []struct {
		what, path string
		state      int32
	}{
		{"healthy", "/checkout", healthy},
		{"hanging, with the patterns", "/checkout", hanging},
		{"hanging, without", "/checkout?without=bulkhead,breaker,timeout", hanging},
	} {
		o, err := beside(ctx, cfg, run.path, run.state, checkouts, others, step)
		if err != nil {
			return err
		}
		throughput = append(throughput, o.goodput())
		fmt.Fprintf(w, "  %-28s %4.0f other requests a second served, p99 %v\n", run.what, o.goodput(), o.percentile(99).Round(100*time.Microsecond))
	}
	share := throughput[1] / throughput[0]
	goal(w, fmt.Sprintf("the other routes keep %.2f of their throughput, goal 0.95 at least", share), share >= 0.95)
	return nil
}

// beside offers checkouts and, once those have piled up, requests to the other routes.
func beside(ctx context.Context, cfg storefront.Config, path string, state int32, checkouts, others float64, step time.Duration) (outcome, error) {
	s, err := newStage(cfg)
	if err != nil {
		return outcome{}, err
	}
	defer s.close()
	s.dependency.state.Store(state)
	ctx, stop := context.WithCancel(ctx)
	offered := make(chan struct{})
	go func() {
		defer close(offered)
		offer(ctx, checkouts, time.Minute, 10*time.Second, get(s.front.URL+path))
	}()
	defer func() { stop(); s.close(); <-offered }()
	select {
	case <-time.After(2 * time.Second): // 256 at 150 a second
	case <-ctx.Done():
	}
	return offer(ctx, others, step, patience, get(s.front.URL+"/stock/mug"), get(s.front.URL+"/profile/ada"), get(s.front.URL+"/limited"),
		post(s.front.URL+"/charge", `{"amount":1250,"token":"tok_visa"}`)), ctx.Err()
}

// healingDependency has the dependency fail until the breaker is open, and heal.
func healingDependency(ctx context.Context, w io.Writer, _ time.Duration) error {
	const cooldown, rate, call = time.Second, 50, work + work/5
	cfg := storefront.Config{}
	cfg.Flaky.Breaker = breaker.Config{Cooldown: cooldown}
	s, err := newStage(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	offered := make(chan struct{})
	go func() {
		defer close(offered)
		offer(ctx, rate, time.Minute, patience, get(s.front.URL+"/checkout"))
	}()
	defer func() { stop(); s.close(); <-offered }()
	transitions, err := s.transitions(ctx)
	if err != nil {
		return err
	}
	until := func(state string) (time.Time, error) {
		for {
			select {
			case t := <-transitions:
				if t.To == state {
					return t.At, nil
				}
			case <-time.After(10 * time.Second):
				return time.Time{}, fmt.Errorf("the breaker was not %s within 10s", state)
			}
		}
	}
	fmt.Fprintf(w, "\nThe dependency of /checkout fails, and heals while the breaker is open: cool-down %v, %d checkouts a second\n", cooldown, rate)
	for _, share := range []float64{0, 0.5, 0.9} {
		s.dependency.state.Store(failing)
		if _, err := until("open"); err != nil {
			return err
		}
		time.Sleep(time.Duration(share * float64(cooldown)))
		s.dependency.state.Store(healthy)
		healed := time.Now()
		closed, err := until("closed")
		if err != nil {
			return err
		}
		took := closed.Sub(healed)
		goal(w, fmt.Sprintf("healed %v after it opened, closed %v later, goal %v at most: a cool-down, and a call with the time to the next one",
			time.Duration(share*float64(cooldown)), took.Round(time.Millisecond), cooldown+call), took <= cooldown+call)
	}
	return nil
}

// retryStorm has the dependency fail every request, and counts what the retries add.
func retryStorm(ctx context.Context, w io.Writer, step time.Duration) error {
	const share, rate = 0.2, 100
	fmt.Fprintf(w, "\nEvery request to the dependency of /checkout fails, nothing but the retry budget is in the way: %d checkouts a second\n", rate)
	for _, budget := range []float64{share, 1e6} {
		cfg := storefront.Config{}
		cfg.Flaky.Retry.BudgetShare, cfg.Flaky.Retry.BudgetFloor = budget, 0.001
		cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1000}
		s, err := newStage(cfg)
		if err != nil {
			return err
		}
		s.dependency.state.Store(failing)
		o := offer(ctx, rate, 3*step, 10*time.Second, get(s.front.URL+"/checkout?without=breaker"))
		calls, requests := o.good+o.refused+o.late+o.failed, s.dependency.requests.Load()
		s.close()
		added := float64(requests)/float64(calls) - 1
		if budget == share {
			goal(w, fmt.Sprintf("%d calls made %d requests: retries add %.2f, goal %v at most, the budget", calls, requests, added, share), added <= share)
		} else {
			fmt.Fprintf(w, "  without a budget %d calls made %d requests: retries add %.2f\n", calls, requests, added)
		}
	}
	return ctx.Err()
}
