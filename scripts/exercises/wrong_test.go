package exercises

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/queue"
	"example.com/storefront/internal/retry"
	"example.com/storefront/internal/shed"
)

// each asks each service with this timeout, and with its own outer context.
func each(timeout time.Duration, outer func(context.Context) context.Context) func(context.Context, []Service) []string {
	return func(ctx context.Context, services []Service) []string {
		said := make([]string, len(services))
		for i, ask := range services {
			attempt, cancel := context.WithTimeout(outer(ctx), timeout)
			said[i], _ = ask(attempt)
			cancel()
		}
		return said
	}
}

func visitors(ctx context.Context) context.Context { return ctx }

func nobodys(context.Context) context.Context { return context.Background() }

// windowFromFirst counts from the first request on, not from the full second.
func windowFromFirst() func(time.Time) bool {
	var begin time.Time
	count := 0
	return func(now time.Time) bool {
		if now.Sub(begin) >= time.Second {
			begin, count = now, 0
		}
		count++
		return count <= Quota
	}
}

// What is half right is refused, too, and the check says which half.
func TestHalfRightAnswersAreRefused(t *testing.T) {
	breakers := func(cfg breaker.Config) func() error {
		return func() error { return checkBreaker(func() breaker.Config { return cfg }) }
	}
	pools := func(checkouts, reports bulkhead.Config) func() error {
		return func() error {
			return checkPools(func() (c, r *bulkhead.Bulkhead, err error) {
				if c, err = bulkhead.New(checkouts); err == nil {
					r, err = bulkhead.New(reports)
				}
				return c, r, err
			})
		}
	}
	sheds := func(cfg shed.Config) func() error {
		return func() error { return checkShed(func() shed.Config { return cfg }) }
	}
	for _, tt := range []struct {
		name  string
		check func() error
		want  string
	}{
		{"no outer timeout", func() error { return checkPage(each(300*time.Millisecond, visitors)) }, "of five all hang: the page took 1.5s"},
		{"no margin", func() error { return checkPage(each(130*time.Millisecond, visitors)) }, `one takes 150ms: the page shows ["yes" "" "yes"]`},
		{"not the visitor's context", func() error { return checkPage(each(200*time.Millisecond, nobodys)) }, "the visitor left after 50ms, and the page went on until 600ms"},

		{"one failure opens", breakers(breaker.Config{Failures: 1}), "every tenth of 100 calls fails: "},
		{"no minimum of calls", breakers(breaker.Config{FailureRatio: 0.5, MinCalls: 1}), "the first three calls fail: "},
		{"open for nothing", breakers(breaker.Config{FailureRatio: 0.5, Cooldown: 1}), "the breaker opens, and 100 of them reach the catalogue all the same"},

		{"more than the database takes", pools(bulkhead.Config{Permits: 20}, bulkhead.Config{Permits: 5}), "reports and checkouts together open 25 connections, want at most 20"},
		{"too few for checkouts", pools(bulkhead.Config{Permits: 9}, bulkhead.Config{Permits: 11}), `checkout 10 gets "bulkhead full"`},
		{"a wait in place of permits", pools(bulkhead.Config{Permits: 9, MaxWait: time.Minute}, bulkhead.Config{Permits: 11}), "checkout 10 waits for a permit"},

		{"another window", func() error { return checkLimit(windowFromFirst) }, "one request, then 20 after "},
		{"no limit", func() error {
			return checkLimit(func() func(time.Time) bool { return func(time.Time) bool { return true } })
		}, "20 requests at once: 20 pass, want 10"},

		{"one too many wait", sheds(shed.Config{Policy: shed.Wait, Queue: 20, MaxWait: time.Minute}), "for people who have left"},
		{"as patient as the callers", sheds(shed.Config{Policy: shed.Wait, Queue: 1000, MaxWait: time.Second}), "for people who have left"},
		{"more workers", sheds(shed.Config{Permits: 5}), "5 at once, and there are two workers"},

		{"says that all were accepted", func() error {
			return checkProduce(func(_ context.Context, q *queue.Queue[int], n int) int {
				for event := 1; event <= n; event++ {
					_ = q.Send(context.Background(), event)
				}
				return n
			})
		}, "the context ends after 250ms: 8 are received, want 5"},
		{"another event", func() error {
			return checkProduce(func(ctx context.Context, q *queue.Queue[int], n int) (accepted int) {
				for event := range n {
					if q.Send(ctx, event) == nil {
						accepted++
					}
				}
				return accepted
			})
		}, "8 events for a queue of 2: received are [0 1 2 3 4 5 6 7], want 1 to 8 in their order"},

		{"retries that go on for others", func() error {
			return checkCall(func(ctx context.Context, b *breaker.Breaker, r *retry.Retrier, attempt func(context.Context) error) error {
				return b.Do(func(func() bool) error { return r.Do(ctx, retry.Call{}, attempt) })
			})
		}, "the breaker opens for others during the first attempt: 4 are made"},
		{"no retry", func() error {
			return checkCall(func(ctx context.Context, b *breaker.Breaker, _ *retry.Retrier, attempt func(context.Context) error) error {
				return b.Do(func(func() bool) error { return attempt(ctx) })
			})
		}, "FFFS, four attempts: 1 are made"},
		{"nobody's context", func() error {
			return checkCall(func(_ context.Context, b *breaker.Breaker, r *retry.Retrier, attempt func(context.Context) error) error {
				return b.Do(func(func() bool) error { return r.Do(context.Background(), retry.Call{}, attempt) })
			})
		}, "the caller leaves during the first attempt: 4 are made"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := tt.check(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			})
		})
	}
}
