package storefront

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
)

// The numbers after the README's first minute.
func TestStatusAfterTheFirstMinute(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.get("/checkout")
		w.get("/checkout")
		for range 4 {
			w.get("/limited", "X-API-Key: k1")
		}
		slow := w.begin(w.Context(), "/slow")
		w.begin(w.Context(), "/slow")
		w.want(w.get("/slow"), "503 busy")
		<-slow
		synctest.Wait()

		idle := func(permits int, breaker string) string {
			return fmt.Sprintf(`{"bulkhead":{"permits":%d,"in_use":0,"waiting":0,"rejected":0},`+
				`"breaker":{"state":"closed","probe_due":false,%s,"retry_after_ms":0,"transitions":0,"rejected":0},`+
				`"retry":{"calls":0,"attempts":0,"retries":0,"budget_left":500,"budget_refused":0},`+
				`"faults":{"script":"S","next":0,"status":503}}`, permits, breaker)
		}
		const inARow = `"consecutive_failures":0,"opens_after":3`
		got := w.get("/status")
		w.want(got, `200 {"dependencies":{"flaky":{`+
			`"bulkhead":{"permits":20,"in_use":0,"waiting":0,"rejected":0},`+
			`"breaker":{"state":"closed","probe_due":false,`+inARow+`,"retry_after_ms":0,"transitions":0,"rejected":0},`+
			`"retry":{"calls":2,"attempts":6,"retries":4,"budget_left":496,"budget_refused":0},`+
			`"faults":{"script":"FFS","next":0,"status":503}},`+
			`"inventory":`+idle(20, `"failures":0,"calls":0,"min_calls":20,"failure_ratio":0.5`)+`,`+
			`"payments":`+idle(100, inARow)+`,"profiles":`+idle(20, inARow)+`},`+
			`"limiter":{"backend":"memory","degraded":false,"keys":1,"max_keys":100000,"allowed":3,"rejected":1,"burst":3,"rate":1},`+
			`"slow":{"permits":2,"in_use":0,"queue":0,"waiting":0,"rejected":1},`+
			`"in_flight":{"permits":1024,"in_use":0,"queue":0,"waiting":0,"rejected":0},`+
			`"streams":{"permits":100,"in_use":0,"queue":0,"waiting":0,"rejected":0},"senders":{"permits":8,"in_use":0,"queue":0,"waiting":0,"rejected":0},"draining":false,"controls":true,"buckets":[{"key":"k1","tokens":2}]}`)
		if got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "no-store" {
			w.Errorf("%v", got.header)
		}
	})
}

// statusOf is the part of /status about one dependency.
func (w *world) statusOf(name string) (s struct {
	Bulkhead struct {
		InUse   int `json:"in_use"`
		Waiting int
	}
	Breaker struct {
		State      string
		ProbeDue   bool `json:"probe_due"`
		Failures   int  `json:"consecutive_failures"`
		RetryAfter int  `json:"retry_after_ms"`
		Rejected   int
	}
}) {
	w.Helper()
	var all struct{ Dependencies map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(w.get("/status").body), &all); err != nil {
		w.Fatal(err)
	}
	if err := json.Unmarshal(all.Dependencies[name], &s); err != nil {
		w.Fatal(err)
	}
	return s
}

// With nobody but the one who looks, the cool-down ends and the probe falls due.
func TestStatusOfAnOpenBreaker(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "F"})
		w.get("/checkout")
		if got := w.statusOf(flaky).Breaker; got.State != "closed" || got.Failures != 1 {
			w.Errorf("after a failure: %+v", got)
		}
		w.get("/checkout")
		w.get("/checkout")
		opened := time.Now()
		w.get("/checkout")
		for _, tt := range []struct {
			at    time.Duration
			left  int
			due   bool
			value string
		}{
			{0, 10_000, false, "1"},
			{9_999_500 * time.Microsecond, 1, false, "1"},
			{10 * time.Second, 0, false, "1"}, // still open, by a nanosecond
			{10*time.Second + 1, 0, true, "0.5"},
			{time.Hour, 0, true, "0.5"},
		} {
			time.Sleep(time.Until(opened.Add(tt.at)))
			got := w.statusOf(flaky).Breaker
			if got.State != "open" || got.RetryAfter != tt.left || got.ProbeDue != tt.due || got.Rejected != 1 {
				w.Errorf("%v after it opened: %+v, want %d ms left, probe due %v", tt.at, got, tt.left, tt.due)
			}
			if line := `circuit_breaker_state{name="flaky"} ` + tt.value + "\n"; !strings.Contains(w.get("/metrics").body, line) {
				w.Errorf("%v after it opened: no %q", tt.at, line)
			}
		}
		w.fault(flaky, simulator.Fault{Script: "H"})
		probe := w.begin(w.Context(), "/checkout")
		if got := w.statusOf(flaky); got.Breaker.State != "half_open" || got.Bulkhead.InUse != 1 {
			w.Errorf("while it probes: %+v", got)
		}
		if line := `circuit_breaker_state{name="flaky"} 0.5` + "\n"; !strings.Contains(w.get("/metrics").body, line) {
			w.Errorf("while it probes: no %q", line)
		}
		<-probe
	})
}

func TestStatusOfTheOptionalLimits(t *testing.T) {
	inBubble(t, Config{CallerRate: 1, CallerBurst: 2, MaxInFlight: 1}, func(w *world) {
		for range 3 {
			w.get("/limited")
		}
		body := w.get("/status").body
		for _, part := range []string{`"callers":{"keys":1,"max_keys":100000,"allowed":2,"rejected":1,"burst":2,"rate":1}`, `"in_flight":{"permits":1,`} {
			if !strings.Contains(body, part) {
				w.Errorf("no %s in %s", part, body)
			}
		}
	})
}

func TestStatusOfADrain(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		slow := w.begin(w.Context(), "/slow")
		w.stop()
		synctest.Wait()
		if body := w.get("/status").body; !strings.Contains(body, `"draining":true,`) || !strings.Contains(body, `"slow":{"permits":2,"in_use":1,`) {
			w.Error(body)
		}
		w.want(<-slow, "200 done")
	})
}

// An hour of looking, at a service of which every part is in the middle of something,
// leaves it exactly like one at which nobody looks.
func TestLookingChangesNothing(t *testing.T) {
	after := func(look bool) (history []string) {
		cfg := Config{LimitRate: 0.01, CallerRate: 1000, CallerBurst: 1000}
		cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
		inBubble(t, cfg, func(w *world) {
			soil(w)
			for range 3 { // half-open for as long as the probe hangs
				w.fault(profiles, simulator.Fault{Script: "F"})
				w.get("/profile/grace")
			}
			time.Sleep(31 * time.Second)
			w.fault(profiles, simulator.Fault{Script: "S"})
			w.get("/profile/grace") // the first of three probes
			if look {
				stream := w.openStream()
				end := time.Now().Add(time.Hour)
				for time.Now().Before(end) {
					time.Sleep(10 * time.Second)
					for _, path := range []string{"/status", "/metrics", "/faults", "/faults/flaky", "/healthz", "/readyz", "/upstream/payments/charges"} {
						if got := w.get(path, "Accept-Encoding: identity"); got.status != 200 {
							w.Fatalf("%s: %v", path, got)
						}
					}
				}
				stream.close()
			}
			time.Sleep(time.Until(w.start.Add(2 * time.Hour)))
			history = append(history, w.get("/status").body)
			for _, path := range []string{"/profile/ada", "/profile/grace", "/profile/grace", "/limited", "/limited", "/checkout", "/stock/mug", "/upstream/payments/charges"} {
				history = append(history, w.get(path).String())
			}
			// The cool-down of inventory has a jitter of its own in each service.
			history = append(history, regexp.MustCompile(`"retry_after_ms":[45]\d{3},`).ReplaceAllString(w.get("/status").body, ""))
		})
		return history
	}
	looked, alone := after(true), after(false)
	if !slices.Equal(looked, alone) {
		t.Errorf("with somebody looking:\n%s\nwith nobody:\n%s", strings.Join(looked, "\n"), strings.Join(alone, "\n"))
	}
	if !strings.Contains(alone[0], `"state":"half_open"`) || !strings.Contains(alone[0], `"probe_due":true`) {
		t.Errorf("nothing was in the middle of anything: %s", alone[0])
	}
}
