package storefront

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// counted is what the timeline has of the last two minutes, all seconds together.
func (w *world) counted() string {
	sum := map[string]int{}
	for _, s := range w.service.timeline.Since(time.Time{}, time.Now()) {
		for name, n := range s.Counts {
			sum[name] += n
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(sum), "map["), "]")
}

// leave asks for a path and hangs up after a while.
func (w *world) leave(after time.Duration, path string) {
	ctx, hangUp := context.WithTimeout(w.Context(), after)
	defer hangUp()
	w.send(ctx, "GET", path)
	synctest.Wait()
}

// oneFailureOpens is a config under which one failed call opens the breaker of flaky.
func oneFailureOpens() (cfg Config) {
	cfg.Flaky.Breaker = breaker.Config{Failures: 1}
	cfg.Flaky.Retry.Attempts = 1
	return cfg
}

// Each answer is counted once, by its kind or by who refused.
func TestTheTimelineCountsEachAnswerOnce(t *testing.T) {
	waiting := Config{SlowPermits: 1, SlowPolicy: shed.Wait}
	waiting.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: time.Second}
	for _, tt := range []struct {
		name string
		cfg  Config
		do   func(w *world)
		want string
	}{
		{"served by every route", Config{}, func(w *world) {
			for _, path := range []string{"/checkout", "/stock/mug", "/profile/ada", "/limited", "/slow"} {
				w.get(path)
			}
			w.post("/charge", mug)
		}, "served:6"},
		{"a no is served all the same", Config{}, func(w *world) {
			w.want(w.get("/stock/none"), "404 unknown sku; try mug, tee or cap")
			w.want(w.get("/profile/none"), "404 unknown id; try ada, grace or linus")
			w.post("/charge", mug, "Idempotency-Key: k")
			w.want(w.post("/charge", `{"amount":1,"token":"t"}`, "Idempotency-Key: k"), "422 Idempotency-Key: used before, with another body")
		}, "served:4"},
		{"what calls nothing is not counted", Config{}, func(w *world) {
			w.post("/charge", "{}")
			w.get("/stock/" + strings.Repeat("x", 65))
			w.get("/checkout?without=all")
			w.get("/limited?", "X-API-Key: a b")
			for _, path := range []string{"/", "/nope", "/status", "/faults", "/flaky", "/upstream/inventory/stock/mug"} {
				w.get(path)
			}
			w.post("/checkout", "")
		}, ""},
		{"fallbacks", Config{}, func(w *world) {
			w.get("/profile/ada")
			w.fault(profiles, simulator.Fault{Script: "F"})
			w.get("/profile/ada")
			w.fault(inventory, simulator.Fault{Script: "F"})
			for range 21 { // the last one meets an open breaker
				w.get("/stock/mug")
			}
			w.fault(inventory, simulator.Fault{Script: "H"})
			for range 20 {
				w.begin(w.Context(), "/stock/mug?without=breaker")
			}
			w.get("/stock/mug?without=breaker") // a full bulkhead
			time.Sleep(time.Second)
		}, "fallback:43 served:1"},
		{"failed", Config{}, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F", Status: 404})
			w.want(w.get("/checkout"), "502 payment failed: 404 Not Found")
			w.fault(flaky, simulator.Fault{Script: "H"})
			w.want(w.get("/checkout?without=timeout"), "504 payment failed: total deadline exceeded after 5s")
			w.fault(payments, simulator.Fault{Script: "L"})
			w.want(w.post("/charge", mug), "502 payment outcome unknown")
			w.fault(profiles, simulator.Fault{Script: "F"})
			w.want(w.get("/profile/ada"), "502 profile unavailable: 503 Service Unavailable")
		}, "failed:4"},
		{"refused by the bulkhead", Config{}, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "H"})
			for range 20 {
				w.begin(w.Context(), "/checkout?without=timeout")
			}
			for range 3 {
				w.want(w.get("/checkout"), "503 bulkhead full")
			}
			time.Sleep(10 * time.Second)
		}, "bulkhead:3 failed:20"},
		{"refused by the breaker", oneFailureOpens(), func(w *world) {
			w.want(w.get("/checkout"), "502 payment failed: 503 Service Unavailable")
			w.want(w.get("/checkout"), "503 circuit open")
			w.want(w.get("/checkout"), "503 circuit open")
		}, "breaker:2 failed:1"},
		{"refused by the breaker of payments", Config{}, func(w *world) {
			w.fault(payments, simulator.Fault{Script: "F"})
			for range 4 {
				w.post("/charge", mug)
			}
		}, "breaker:1 failed:3"},
		{"refused by the limiter", Config{LimitBurst: 1, LimitMaxKeys: 1}, func(w *world) {
			for _, key := range []string{"a", "a", "b", "b"} { // b shares a bucket
				w.get("/limited", "X-API-Key: "+key)
			}
		}, "limiter:2 served:2"},
		{"refused by the caller limit", Config{CallerRate: 1, CallerBurst: 2}, func(w *world) {
			for _, path := range []string{"/limited", "/stock/mug", "/stock/mug", "/slow"} {
				w.get(path)
			}
		}, "callers:2 served:2"},
		{"shed by /slow", Config{}, func(w *world) {
			for range 5 {
				w.begin(w.Context(), "/slow")
			}
			time.Sleep(3 * time.Second)
		}, "served:2 slow:3"},
		{"shed by the cap on all", Config{MaxInFlight: 1}, func(w *world) {
			slow := w.begin(w.Context(), "/slow")
			w.get("/checkout")
			w.get("/limited")
			<-slow
		}, "in_flight:2 served:1"},
		{"no room for one more stream", Config{}, func(w *world) {
			for range 102 {
				w.begin(w.Context(), "/events")
			}
			w.stop()
		}, "streams:2"},
		{"who is told that the server stops", Config{}, func(w *world) {
			slow := w.begin(w.Context(), "/slow")
			w.stop()
			synctest.Wait()
			w.want(w.get("/stock/mug"), "503 draining")
			<-slow
		}, "served:1"},
		{"who hangs up is in none", waiting, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "H"})
			holds := w.begin(w.Context(), "/checkout?without=timeout,retry,breaker")
			w.leave(100*time.Millisecond, "/checkout") // waits for a permit
			<-holds
			w.leave(100*time.Millisecond, "/checkout") // in an attempt
			w.fault(inventory, simulator.Fault{Script: "H"})
			w.leave(100*time.Millisecond, "/stock/mug")
			w.fault(profiles, simulator.Fault{Script: "H"})
			w.leave(100*time.Millisecond, "/profile/ada")
			w.leave(time.Second, "/slow")
			slow := w.begin(w.Context(), "/slow")
			w.leave(time.Second, "/slow") // in the queue
			<-slow
		}, "failed:1 served:1"},
		{"who hangs up between two attempts is in none", func() (cfg Config) {
			cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
			return cfg
		}(), func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F"})
			w.leave(50*time.Millisecond, "/checkout")
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.cfg, func(w *world) {
				tt.do(w)
				synctest.Wait()
				if got := w.counted(); got != tt.want {
					w.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// What a reader draws from the events is what was counted.
func TestTheTimelineEventsAddUp(t *testing.T) {
	inBubble(t, Config{LimitBurst: 1}, func(w *world) {
		stream := w.openStream()
		var events []received
		for i := range 40 {
			for range i % 4 {
				w.get("/limited")
				w.get("/stock/mug")
				w.get("/checkout")
			}
			time.Sleep(170 * time.Millisecond)
			if i%7 == 0 {
				w.post("/reset", "")
			}
		}
		time.Sleep(time.Second)
		events = append(events, stream.take()...)
		got, want := w.drawn(events), w.drawn(w.openStream().take())
		if !maps.Equal(got, want) || len(want) < 1 {
			w.Errorf("drawn %v, want %v", got, want)
		}
	})
}

// callsOf has what the calls recorded say, by this function.
func (w *world) callsOf(say func(callEvent) string) (all []string) {
	for _, e := range w.openStream().take() {
		var c callEvent
		if e.name == "call" && json.Unmarshal([]byte(e.data), &c) == nil {
			all = append(all, say(c))
		}
	}
	return all
}

func TestCallEventsSayWhatTheCallerGot(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.get("/stock/mug")
		w.get("/stock/none")
		w.fault(inventory, simulator.Fault{Script: "F"})
		w.get("/stock/mug")
		w.fault(inventory, simulator.Fault{Script: "H"})
		w.leave(100*time.Millisecond, "/stock/mug")
		w.fault(payments, simulator.Fault{Script: "F"})
		for range 4 {
			w.post("/charge", mug)
		}
		got := w.callsOf(func(c callEvent) string { return c.Answer + " " + c.Outcome })
		want := []string{"served ok", "served status_4xx", "fallback status_5xx", "nothing cancelled",
			"failed status_5xx", "failed status_5xx", "failed status_5xx", "refused circuit_open"}
		if !slices.Equal(got, want) {
			w.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestCallEventsSayWhyThereWasNoFurtherAttempt(t *testing.T) {
	longest := func(ceiling time.Duration) time.Duration { return ceiling }
	for _, tt := range []struct {
		name string
		cfg  Config
		do   func(w *world)
		want []string // of each call
	}{
		{"served", Config{}, func(w *world) { w.get("/checkout") }, []string{""}},
		{"all failed", Config{}, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F"})
			w.get("/checkout")
		}, []string{"no attempt left"}},
		{"not transient", Config{}, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
			w.get("/checkout")
		}, []string{"not transient"}},
		{"a charge without a key and with one", Config{}, func(w *world) {
			w.fault(payments, simulator.Fault{Script: "F"})
			w.post("/charge", mug)
			w.post("/charge", mug, "Idempotency-Key: k")
		}, []string{"a repetition could take effect twice", "no attempt left"}},
		{"the budget", func() (cfg Config) {
			cfg.Flaky.Retry.BudgetFloor, cfg.Flaky.Retry.BudgetShare = 0.1, 0.001 // one retry in 10 s
			return cfg
		}(), func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F"})
			w.get("/checkout")
			w.get("/checkout")
		}, []string{"retry budget spent", "retry budget spent"}},
		{"opened by others", func() (cfg Config) {
			cfg.Flaky.Breaker.Failures = 1
			cfg.Flaky.Retry.Jitter = longest
			return cfg
		}(), func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F"})
			waits := w.begin(w.Context(), "/checkout")
			w.get("/checkout?without=retry")
			<-waits
		}, []string{"", "the breaker has opened"}},
		{"asked to wait too long", func() (cfg Config) {
			cfg.Flaky.Retry.Jitter = longest
			return cfg
		}(), func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F", RetryAfter: "60"})
			w.get("/checkout")
		}, []string{"a wait of 1m0.1s would reach the deadline"}},
		{"refused or left out, there was none to repeat", oneFailureOpens(), func(w *world) {
			w.get("/checkout?without=retry")
			w.get("/checkout")
		}, []string{"", ""}},
		{"ended by the deadline or the caller", Config{}, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "H"})
			w.get("/checkout?without=timeout")
			w.leave(100*time.Millisecond, "/checkout")
		}, []string{"", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.cfg, func(w *world) {
				tt.do(w)
				if got := w.callsOf(func(c callEvent) string { return c.GaveUp }); !slices.Equal(got, tt.want) {
					w.Errorf("got %q, want %q", got, tt.want)
				}
				// The log has the same.
				for _, reason := range tt.want {
					if reason != "" && !strings.Contains(w.log.String(), fmt.Sprintf("reason=%q", reason)) {
						w.Errorf("the log lacks %q", reason)
					}
				}
			})
		})
	}
}
