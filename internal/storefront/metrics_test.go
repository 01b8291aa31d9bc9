package storefront

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
)

// scrape returns the series of /metrics with their values, Go's own apart.
func (w *world) scrape() map[string]string {
	w.Helper()
	got := w.get("/metrics", "Accept-Encoding: identity") // to compress takes most of the time
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain; version=0.0.4") {
		w.Fatalf("/metrics: %v %v", got.status, got.header)
	}
	return seriesOf(got.body)
}

func seriesOf(text string) map[string]string {
	series := map[string]string{}
	for line := range strings.Lines(text) {
		i := strings.LastIndex(line, " ")
		if name := line[:i]; !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go_") && !strings.HasPrefix(line, "process_") {
			series[name] = strings.TrimSpace(line[i:])
		}
	}
	return series
}

// All series are there from the start, at 0: a counter that appears with its first
// count has, to Prometheus, never risen.
func TestEverySeriesIsThereFromTheStart(t *testing.T) {
	var want []string
	for name := range policies {
		want = append(want, fmt.Sprintf(`circuit_breaker_state{name=%q}`, name), fmt.Sprintf(`circuit_breaker_rejected_total{name=%q}`, name),
			fmt.Sprintf(`retry_budget_refused_total{dependency=%q}`, name), fmt.Sprintf(`bulkhead_in_use{dependency=%q}`, name),
			fmt.Sprintf(`bulkhead_rejected_total{dependency=%q}`, name), fmt.Sprintf(`dependency_call_duration_seconds_count{dependency=%q}`, name))
		for _, change := range []string{`from="closed",name=%q,to="open"`, `from="open",name=%q,to="half_open"`, `from="half_open",name=%q,to="open"`,
			`from="half_open",name=%q,to="closed"`, `from="open",name=%q,to="closed"`} {
			want = append(want, fmt.Sprintf(`circuit_breaker_transitions_total{`+change+`}`, name))
		}
		for _, outcome := range []string{"ok", "status_4xx", "status_5xx", "timeout", "connection", "undecodable", "cancelled"} {
			want = append(want, fmt.Sprintf(`dependency_attempts_total{dependency=%q,outcome=%q}`, name, outcome))
		}
	}
	for _, p := range pinned {
		want = append(want, fmt.Sprintf(`http_request_duration_seconds_count{route=%q}`, p.route))
	}
	want = append(want, "ratelimit_keys", "ratelimit_degraded", "ratelimit_fallback_total", `ratelimit_decisions_total{decision="allowed"}`, `ratelimit_decisions_total{decision="rejected"}`,
		`ratelimit_decisions_total{decision="overflow"}`, `shed_rejected_total{route="/slow"}`, `shed_rejected_total{route="/events"}`,
		`shed_rejected_total{route="/send"}`, `shed_rejected_total{route="global"}`)
	slices.Sort(want)
	inBubble(t, Config{}, func(w *world) {
		got := w.scrape()
		maps.DeleteFunc(got, func(name, _ string) bool {
			return strings.Contains(name, "_bucket{") || strings.Contains(name, "_sum{")
		})
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			w.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
		}
		for name, value := range got {
			if value != "0" {
				w.Errorf("%s is %s at the start", name, value)
			}
		}
	})
}

func TestMetricsCountWhatHappens(t *testing.T) {
	cfg := Config{LimitMaxKeys: 1, LimitBurst: 1}
	cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	cfg.Flaky.Retry.BudgetFloor, cfg.Flaky.Retry.BudgetShare = 0.3, 0.001 // three retries in 10 s
	cfg.Flaky.Breaker.Failures = 3
	cfg.Flaky.Bulkhead.Permits = 1
	inBubble(t, cfg, func(w *world) {
		w.get("/checkout") // two retries, 300 ms
		w.fault(flaky, simulator.Fault{Script: "F"})
		w.get("/checkout") // one, and one refused
		w.get("/checkout")
		w.get("/checkout") // which opens it
		w.get("/checkout")
		time.Sleep(10*time.Second + 1)
		w.fault(flaky, simulator.Fault{Script: "H"})
		ctx, hangUp := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer hangUp()
		gone := w.begin(ctx, "/checkout")
		w.want(w.get("/checkout"), "503 bulkhead full")
		if got := w.scrape()[`bulkhead_in_use{dependency="flaky"}`]; got != "1" {
			w.Errorf("%s permits in use, want 1", got)
		}
		<-gone
		synctest.Wait()
		w.fault(flaky, simulator.Fault{Script: "S", Latency: 2 * time.Millisecond})
		w.get("/checkout") // the next is the probe
		for _, key := range []string{"a", "a", "b", "c"} {
			w.get("/limited", "X-API-Key: "+key)
		}
		for range 3 {
			w.begin(w.Context(), "/slow")
		}
		w.get("/stock/none")
		w.get("/nope")
		got := w.scrape()
		for series, want := range map[string]string{
			`dependency_attempts_total{dependency="flaky",outcome="ok"}`:                   "2",
			`dependency_attempts_total{dependency="flaky",outcome="status_5xx"}`:           "6",
			`dependency_attempts_total{dependency="flaky",outcome="cancelled"}`:            "1",
			`dependency_attempts_total{dependency="inventory",outcome="status_4xx"}`:       "1",
			`dependency_call_duration_seconds_count{dependency="flaky"}`:                   "6", // not those refused
			`dependency_call_duration_seconds_bucket{dependency="flaky",le="0.0025"}`:      "3",
			`dependency_call_duration_seconds_bucket{dependency="flaky",le="0.1"}`:         "5",
			`retry_budget_refused_total{dependency="flaky"}`:                               "3",
			`circuit_breaker_transitions_total{from="closed",name="flaky",to="open"}`:      "1",
			`circuit_breaker_transitions_total{from="open",name="flaky",to="half_open"}`:   "1",
			`circuit_breaker_transitions_total{from="half_open",name="flaky",to="closed"}`: "1",
			`circuit_breaker_rejected_total{name="flaky"}`:                                 "1",
			`circuit_breaker_state{name="flaky"}`:                                          "0",
			`bulkhead_rejected_total{dependency="flaky"}`:                                  "1",
			`bulkhead_in_use{dependency="flaky"}`:                                          "0",
			`ratelimit_decisions_total{decision="allowed"}`:                                "2",
			`ratelimit_decisions_total{decision="rejected"}`:                               "1",
			`ratelimit_decisions_total{decision="overflow"}`:                               "1",
			`ratelimit_keys`:                                                    "1",
			`shed_rejected_total{route="/slow"}`:                                "1",
			`http_requests_total{code="200",route="/checkout"}`:                 "2",
			`http_requests_total{code="502",route="/checkout"}`:                 "3",
			`http_requests_total{code="503",route="/checkout"}`:                 "2",
			`http_requests_total{code="499",route="/checkout"}`:                 "1",
			`http_requests_total{code="429",route="/limited"}`:                  "2",
			`http_requests_total{code="404",route="/stock/{sku}"}`:              "1",
			`http_requests_total{code="404",route="other"}`:                     "1",
			`http_request_duration_seconds_count{route="/checkout"}`:            "8",
			`http_request_duration_seconds_bucket{route="/checkout",le="0.25"}`: "7",
		} {
			if got[series] != want {
				w.Errorf("%s %s, want %s", series, got[series], want)
			}
		}
		w.stop()
		synctest.Wait()
	})
}

func TestTheGlobalCapIsCounted(t *testing.T) {
	inBubble(t, Config{MaxInFlight: 1}, func(w *world) {
		slow := w.begin(w.Context(), "/slow")
		w.want(w.get("/limited"), "503 busy")
		got := w.scrape()
		if got[`shed_rejected_total{route="global"}`] != "1" || got[`shed_rejected_total{route="/slow"}`] != "0" {
			w.Errorf("%v", got)
		}
		<-slow
	})
}

// Whatever clients send, the labels stay those of fixed sets.
func TestNoLabelComesFromARequest(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for i := range 50 {
			x := fmt.Sprint("x", i)
			w.get("/" + x)
			w.get("/stock/" + x)
			w.get("/profile/" + x + "?without=" + x)
			w.get("/faults/" + x)
			w.put("/faults/"+x, x+"=1")
			w.get("/limited", "X-API-Key: "+x)
			w.get("/limited", "X-Forwarded-For: "+x, "Priority: "+x)
			w.post("/charge", x, "Idempotency-Key: "+x)
			w.send(w.Context(), strings.ToUpper(x), "/checkout")
			w.send(w.Context(), strings.ToUpper(x), "/"+x)
			w.raw(fmt.Sprintf("GET /slow%%0a%s", x), "Host: "+x, "")
		}
		routes := map[string]bool{"other": true}
		for _, p := range pinned {
			routes[p.route] = true
		}
		n, ours, route := 0, regexp.MustCompile(`(?i)x\d`), regexp.MustCompile(`route="([^"]*)"`)
		for series := range w.scrape() {
			if ours.MatchString(series) {
				w.Errorf("a series of a client's: %s", series)
			}
			if m := route.FindStringSubmatch(series); m != nil && m[1] != "global" && !routes[m[1]] {
				w.Errorf("no such route: %s", series)
			}
			n++
		}
		if n > 1000 {
			w.Errorf("%d series", n)
		}
		if got := w.scrape()[`http_requests_total{code="405",route="/checkout"}`]; got != "50" {
			w.Errorf("%s times 405 of /checkout, want 50", got)
		}
	})
}
