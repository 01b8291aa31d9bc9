package storefront

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/retry"
	"example.com/storefront/internal/simulator"
)

// Also where it comes together with the attempt's own timeout.
func TestTotalDeadlineDuringTheFirstAttemptIsA504(t *testing.T) {
	for _, deadline := range []time.Duration{500 * time.Millisecond, 800 * time.Millisecond} {
		cfg := Config{FlakyURL: dependencyURL}
		cfg.Flaky.Deadline = deadline
		inBubble(t, cfg, func(w *world) {
			w.serveDependency(hang)
			w.want(w.get("/checkout"), fmt.Sprintf("504 payment failed: total deadline exceeded after %v", deadline))
		})
	}
}

// Only the last word counts: a call that the deadline ended is a failure, though
// the answer before it, a 429, was a healthy one.
func TestTotalDeadlineIsAFailureWhateverCameBefore(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Deadline = 500 * time.Millisecond
	inBubble(t, cfg, func(w *world) {
		calls := 0
		w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			if calls++; calls%2 == 1 {
				rw.WriteHeader(429)
				return
			}
			hang(rw, r)
		})
		for range 3 {
			w.want(w.get("/checkout"), "504 payment failed: total deadline exceeded after 500ms; last error: 429 Too Many Requests")
		}
		w.want(w.get("/checkout"), "503 circuit open")
	})
}

func TestTotalDeadlineEndsTheCallAndNamesTheLastRealError(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Deadline = time.Second
	inBubble(t, cfg, func(w *world) {
		d := w.serveDependency(hang)
		w.want(w.get("/checkout"), "504 payment failed: total deadline exceeded after 1s; last error: attempt timed out after 800ms")
		if took := time.Since(w.start); took != time.Second {
			w.Errorf("took %v, want 1s", took)
		}
		time.Sleep(time.Minute)
		if got := d.requests.Load(); got != 2 {
			w.Errorf("%d attempts, want 2 and none later", got)
		}
	})
}

func TestRetryAfterOfTheDependency(t *testing.T) {
	for _, tt := range []struct {
		value       string
		least, most time.Duration
		want        string
	}{
		{"2", 2 * time.Second, 2100 * time.Millisecond, "200 {}"}, // added to the jitter
		{"4", 4 * time.Second, 4100 * time.Millisecond, "200 {}"},
		{"5", 0, 0, "502 payment failed: 503 Service Unavailable"}, // would reach the deadline
		{"3600", 0, 0, "502 payment failed: 503 Service Unavailable"},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 0, 100 * time.Millisecond, "200 {}"}, // overflows as well
		{"9223372037", 0, 100 * time.Millisecond, "200 {}"},
		{"-3", 0, 100 * time.Millisecond, "200 {}"},
		{"1.5", 0, 100 * time.Millisecond, "200 {}"},
		{"Sat, 01 Jan 2000 00:00:03 GMT", 3 * time.Second, 3100 * time.Millisecond, "200 {}"}, // the bubble begins with 2000
	} {
		t.Run(tt.value, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				calls := 0
				w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
					if calls++; calls == 1 {
						rw.Header().Set("Retry-After", tt.value)
						rw.WriteHeader(503)
						return
					}
					io.WriteString(rw, "{}")
				})
				w.want(w.get("/checkout"), tt.want)
				if took := time.Since(w.start); took < tt.least || took > tt.most {
					w.Errorf("took %v, want %v to %v", took, tt.least, tt.most)
				}
				gaveUp := strings.Contains(w.log.String(), `msg="gave up" dependency=flaky reason="a wait of `)
				if gaveUp != strings.HasPrefix(tt.want, "502") {
					w.Errorf("the log says that it gave up: %v\n%s", gaveUp, w.log.String())
				}
			})
		})
	}
}

func TestWhichAnswersAreRetriedAndWhichOpenTheBreaker(t *testing.T) {
	for _, tt := range []struct {
		status   int
		attempts int64 // of one call
		failure  bool
	}{
		{302, 1, true}, // not followed, no use
		{400, 1, false},
		{404, 1, false},
		{429, 4, false},
		{500, 1, true},
		{501, 1, true},
		{502, 4, true},
		{503, 4, true},
		{504, 4, true},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Location", self+"/flaky")
					rw.WriteHeader(tt.status)
				})
				w.want(w.get("/checkout"), fmt.Sprintf("502 payment failed: %d %s", tt.status, http.StatusText(tt.status)))
				if got := d.requests.Load(); got != tt.attempts {
					w.Errorf("%d attempts, want %d", got, tt.attempts)
				}
				w.get("/checkout")
				w.get("/checkout")
				want := breaker.Closed
				if tt.failure {
					want = breaker.Open
				}
				if got := w.snapshot(flaky).Breaker.State; got != want {
					w.Errorf("%v after three, want %v", got, want)
				}
			})
		})
	}
}

// When everything fails, the retries of all callers together stay within the
// budget.
func TestRetryStormStaysWithinTheBudget(t *testing.T) {
	for _, tt := range []struct {
		share, floor float64
		want         int64 // requests of 100 calls
	}{
		{0, 0, 400},         // the default floor is far above
		{0.2, 0.001, 120},   // a fifth more
		{0.001, 3, 130},     // 3 a second, over 10 s
		{3, 0.001, 400},     // as good as none
		{0.001, 0.001, 100}, // no retry at all
	} {
		cfg := Config{FlakyURL: dependencyURL}
		cfg.Flaky.Retry = retry.Config{BudgetShare: tt.share, BudgetFloor: tt.floor, Jitter: func(time.Duration) time.Duration { return 0 }}
		cfg.Flaky.Breaker.Failures = 1000
		cfg.Flaky.Bulkhead.Permits = 100
		inBubble(t, cfg, func(w *world) {
			d := w.serveDependency(status(503))
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { w.want(w.get("/checkout"), "502 payment failed: 503 Service Unavailable") })
			}
			all.Wait()
			if got := d.requests.Load(); got != tt.want {
				w.Errorf("share %v, floor %v: %d requests, want %d", tt.share, tt.floor, got, tt.want)
			}
			if refused := w.snapshot(flaky).Retry.BudgetRefused; (refused == 0) != (tt.want == 400) {
				w.Errorf("share %v, floor %v: %d retries refused", tt.share, tt.floor, refused)
			}
			if said := strings.Contains(w.log.String(), `reason="retry budget spent"`); said != (tt.want < 400) {
				w.Errorf("share %v, floor %v: the log says that the budget was spent: %v", tt.share, tt.floor, said)
			}
		})
	}
}

// A Storefront behind a Storefront: each of the four attempts in front makes four
// behind. (The breaker behind would soon put an end to that.)
func TestRetriesMultiplyOverTwoLayers(t *testing.T) {
	inBubble(t, Config{FlakyURL: "http://127.0.0.1:3001/checkout"}, func(w *world) {
		cfg := Config{Log: quiet}
		cfg.Flaky.Breaker.Failures = 100
		behind, err := newService(cfg)
		if err != nil {
			w.Fatal(err)
		}
		if _, err := behind.simulated[flaky].Set(simulator.Fault{Script: "F"}); err != nil {
			w.Fatal(err)
		}
		ln, err := w.network.Listen("tcp", "127.0.0.1:3001")
		if err != nil {
			w.Fatal(err)
		}
		srv := &http.Server{Handler: behind}
		go srv.Serve(ln)
		w.cleanup = append(w.cleanup, srv.Close)
		w.want(w.get("/checkout"), "502 payment failed: 502 Bad Gateway")
		front, back := w.snapshot(flaky).Retry.Attempts, behind.dependencies[flaky].Snapshot().Retry.Attempts
		if front != 4 || back != 16 {
			w.Errorf("%d attempts in front and %d behind, want 4 and 16", front, back)
		}
	})
}
