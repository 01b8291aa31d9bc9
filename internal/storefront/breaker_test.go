package storefront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/simulator"
)

func TestCheckoutRetriesUntilFlakySucceeds(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/checkout"), `200 {"call":3}`)
		w.want(w.get("/checkout"), `200 {"call":6}`)
		w.want(w.get("/flaky"), `503 `)
		w.want(w.get("/flaky"), `503 `)
		w.want(w.get("/flaky"), `200 {"call":9}`)
	})
}

func TestBreakerOpensStaysOpenProbesAndCloses(t *testing.T) {
	const s = time.Second
	healed := false
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			if !healed {
				rw.WriteHeader(500) // not one that is retried
				return
			}
			io.WriteString(rw, `{"paid":true}`)
		})
		w.timeline(
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "503 circuit open"},
			step{11 * s, "/checkout", "503 circuit open"}, // exactly 10 s
		)
		if got := d.requests.Load(); got != 3 {
			w.Errorf("%d requests reached the dependency, want 3", got)
		}
		w.timeline(
			step{11*s + 1, "/checkout", "502 payment failed: 500 Internal Server Error"}, // the probe
			step{11*s + 1, "/checkout", "503 circuit open"},
			step{21*s + 1, "/checkout", "503 circuit open"},
		)
		healed = true
		w.timeline(
			step{21*s + 2, "/checkout", `200 {"paid":true}`},
			step{21*s + 2, "/checkout", `200 {"paid":true}`},
		)
		var transitions []string
		for line := range strings.Lines(w.log.String()) {
			if _, change, ok := strings.Cut(line, `msg="breaker transition" `); ok {
				_, level, _ := strings.Cut(line, "level=")
				transitions = append(transitions, level[:4]+" "+strings.TrimSpace(change))
			}
		}
		want := []string{
			"WARN dependency=flaky from=closed to=open",
			"INFO dependency=flaky from=open to=half_open",
			"WARN dependency=flaky from=half_open to=open",
			"INFO dependency=flaky from=open to=half_open",
			"INFO dependency=flaky from=half_open to=closed",
		}
		if fmt.Sprint(transitions) != fmt.Sprint(want) {
			w.Errorf("logged %q, want %q", transitions, want)
		}
	})
}

// Whatever becomes of a probe, one more cool-down is enough.
func TestEveryProbeEndsHalfOpen(t *testing.T) {
	for _, tt := range []struct {
		name  string
		probe http.HandlerFunc
		want  string
		after string // of the call at the end of the next cool-down
	}{
		{"that hangs", hang, "502 payment failed: attempt timed out after 800ms", "200 {}"},
		{"that is cut off", func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, _ := rw.(http.Hijacker).Hijack()
			conn.Close()
		}, "502 payment failed: EOF", "200 {}"},
		{"that is a healthy 404", status(404), "502 payment failed: 404 Not Found", "200 {}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answer atomic.Value // of http.HandlerFunc
			answer.Store(status(500))
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				w.serveDependency(func(rw http.ResponseWriter, r *http.Request) { answer.Load().(http.HandlerFunc)(rw, r) })
				for range 3 {
					w.get("/checkout")
				}
				time.Sleep(10*time.Second + time.Nanosecond)
				answer.Store(tt.probe)
				w.want(w.get("/checkout"), tt.want)
				answer.Store(takes(0))
				if strings.Contains(tt.want, "404") {
					w.want(w.get("/checkout"), "200 {}")
				} else {
					w.want(w.get("/checkout"), "503 circuit open")
				}
				time.Sleep(10*time.Second + time.Nanosecond)
				w.want(w.get("/checkout"), tt.after)
			})
		})
	}
}

func TestFifty404sLeaveItClosed(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.serveDependency(status(404))
		for range 50 {
			w.want(w.get("/checkout"), "502 payment failed: 404 Not Found")
		}
	})
}

func TestRetryAfterOfAnOpenBreaker(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.serveDependency(status(500))
		for range 3 {
			w.get("/checkout")
		}
		for _, tt := range []struct {
			at   time.Duration
			want string
		}{
			{0, "5"}, // never more
			{5 * time.Second, "5"},
			{5*time.Second + 1, "5"}, // rounded up
			{6 * time.Second, "4"},
			{6600 * time.Millisecond, "4"},
			{9*time.Second + 500*time.Millisecond, "1"},
			{10 * time.Second, "1"},
		} {
			time.Sleep(time.Until(w.start.Add(tt.at)))
			got := w.get("/checkout")
			w.want(got, "503 circuit open")
			if got := got.header.Get("Retry-After"); got != tt.want {
				w.Errorf("at %v: Retry-After %q, want %q", tt.at, got, tt.want)
			}
		}
	})
}

func TestCrowdAfterTheCooldownGetsOneProbe(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 100
		slow := false
		d := w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			if !slow {
				rw.WriteHeader(500)
				return
			}
			takes(500*time.Millisecond)(rw, r)
		})
		for range 3 {
			w.get("/checkout")
		}
		time.Sleep(10*time.Second + 1)
		slow = true
		start := time.Now()
		got := map[string]int{}
		var mu sync.Mutex
		var crowd sync.WaitGroup
		for range 50 {
			crowd.Go(func() {
				a := w.get("/checkout")
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprint(a, " ", time.Since(start), " ", a.header.Get("Retry-After"))]++
			})
		}
		crowd.Wait()
		want := map[string]int{"200 {} 500ms ": 1, "503 circuit open 0s 1": 49}
		if fmt.Sprint(got) != fmt.Sprint(want) || d.requests.Load() != 4 {
			w.Errorf("%v with %d requests, want %v with 4", got, d.requests.Load(), want)
		}
	})
}

// A dependency that keeps hanging makes the state alternate, as each probe takes its
// time. Whoever watches must ask for the worst of a while: "open for two minutes on
// end" never happens.
func TestAHangingDependencyMakesTheStateAlternate(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "H"})
		ctx, leave := context.WithCancel(w.Context())
		defer leave()
		var callers sync.WaitGroup
		callers.Go(func() {
			for ctx.Err() == nil {
				callers.Go(func() { w.send(ctx, "GET", "/checkout") })
				time.Sleep(501 * time.Millisecond)
			}
		})
		time.Sleep(time.Minute)
		longestOpen, open, lastOpen := 0, 0, 0
		seen := map[breaker.State]int{}
		for second := range 600 {
			time.Sleep(time.Second)
			state := w.snapshot(flaky).Breaker.State
			seen[state]++
			if open++; state != breaker.Open {
				open = 0
			} else {
				lastOpen = second
			}
			longestOpen = max(longestOpen, open)
			if second-lastOpen >= 60 {
				w.Fatalf("not open for a minute, at %d s", second)
			}
		}
		if seen[breaker.Closed] > 0 || seen[breaker.HalfOpen] == 0 || longestOpen > 15 {
			w.Errorf("states %v, at most %d s open on end, want open and half-open in turn", seen, longestOpen)
		}
		leave()
		callers.Wait()
	})
}

func TestDeadPortOpensTheBreaker(t *testing.T) {
	inBubble(t, Config{FlakyURL: "http://127.0.0.1:1"}, func(w *world) {
		for range 3 {
			w.want(w.get("/checkout"), "502 payment failed: dial tcp 127.0.0.1:1: connect: connection refused")
		}
		before := time.Now()
		w.want(w.get("/checkout"), "503 circuit open")
		if waited := time.Since(before); waited != 0 {
			w.Errorf("refused after %v, want at once", waited)
		}
	})
}

// Ten calls are in their first wait when another, by a status that is not
// retried, opens the breaker.
func TestNoAttemptStartsOnceTheBreakerHasOpened(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Breaker.Failures = 1
	cfg.Flaky.Retry.Jitter = func(time.Duration) time.Duration { return time.Second }
	inBubble(t, cfg, func(w *world) {
		calls := 0
		d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			if calls++; calls == 11 {
				rw.WriteHeader(500)
				return
			}
			rw.WriteHeader(503)
		})
		var callers []<-chan answer
		for range 10 {
			callers = append(callers, w.begin(w.Context(), "/checkout"))
		}
		w.want(w.get("/checkout"), "502 payment failed: 500 Internal Server Error")
		for _, c := range callers {
			w.want(<-c, "502 payment failed: 503 Service Unavailable")
		}
		if got := d.requests.Load(); got != 11 {
			w.Errorf("%d attempts, want 11: none after the breaker opened", got)
		}
	})
}
