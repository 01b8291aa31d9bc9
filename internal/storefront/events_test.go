package storefront

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/storefront/internal/simulator"
)

func TestEventsBeginWithASnapshotAndTellEachThing(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	cfg.Flaky.Breaker.Failures = 1
	inBubble(t, cfg, func(w *world) {
		status := strings.Replace(w.get("/status").body, `"streams":{"permits":100,"in_use":0,`, `"streams":{"permits":100,"in_use":1,`, 1)
		stream := w.openStream()
		first := stream.take()
		if len(first) != 2 || first[0].name != "snapshot" || first[0].data != status || first[1].name != "timeline" ||
			first[1].data != `{"now":"2000-01-01T00:00:00Z","seconds":[]}` {
			w.Fatalf("first %v, want the status %s and an empty timeline", first, status)
		}
		at := func(e any) string {
			body, err := json.Marshal(e)
			if err != nil {
				w.Fatal(err)
			}
			return strings.ReplaceAll(string(body), `"at":"0001-01-01T00:00:00Z"`, fmt.Sprintf(`"at":%q`, time.Now().Format(time.RFC3339Nano)))
		}
		check := func(want ...string) {
			w.Helper()
			var got []string
			for _, e := range stream.take() {
				if e.name != "snapshot" && e.name != "timeline" {
					got = append(got, e.name+" "+e.data)
				}
			}
			if !slices.Equal(got, want) {
				w.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}

		w.get("/checkout")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Answer: "served", Outcome: "ok", Attempts: 3, Breaker: "closed", Took: 300, Steps: []stepEvent{
			{1, "503", 0}, {Took: 100}, {2, "503", 0}, {Took: 200}, {3, "200", 0},
		}}))
		w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
		w.get("/checkout")
		check("transition "+at(transitionEvent{Dependency: "flaky", From: "closed", To: "open"}),
			"call "+at(callEvent{Route: "/checkout", Dependency: "flaky", Answer: "failed", Outcome: "status_5xx", Attempts: 1, GaveUp: "not transient", Breaker: "open", Steps: []stepEvent{{1, "500", 0}}}))
		w.get("/checkout")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Answer: "refused", Outcome: "circuit_open", Breaker: "open", Steps: []stepEvent{}}))
		w.fault(inventory, simulator.Fault{Script: "M"})
		w.get("/stock/mug")
		check("call " + at(callEvent{Route: "/stock/{sku}", Dependency: "inventory", Answer: "fallback", Outcome: "undecodable", Fallback: "default", Attempts: 1, GaveUp: "not transient", Breaker: "closed", Steps: []stepEvent{{1, "undecodable", 0}}}))
		w.get("/stock/none?without=breaker")
		check("call " + at(callEvent{Route: "/stock/{sku}", Dependency: "inventory", Answer: "fallback", Outcome: "undecodable", Fallback: "default", Attempts: 1, GaveUp: "not transient", Breaker: "closed", Steps: []stepEvent{{1, "undecodable", 0}}}))
		w.post("/charge", mug)
		check("call " + at(callEvent{Route: "/charge", Dependency: "payments", Answer: "served", Outcome: "ok", Attempts: 1, Breaker: "closed", Steps: []stepEvent{{1, "200", 0}}}))
		w.post("/charge", "{}") // no call was made
		check()

		for range 4 {
			w.get("/limited")
		}
		check("decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}), "decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}),
			"decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}), "decision "+at(decisionEvent{By: "limiter", Decision: "rejected"}))
		w.begin(w.Context(), "/slow")
		w.begin(w.Context(), "/slow")
		w.get("/slow")
		check("decision "+at(decisionEvent{By: "slow", Decision: "allowed"}), "decision "+at(decisionEvent{By: "slow", Decision: "allowed"}),
			"decision "+at(decisionEvent{By: "slow", Decision: "rejected"}))

		w.fault(flaky, simulator.Fault{Script: "H"})
		for range 20 {
			w.begin(w.Context(), "/checkout?without=breaker")
		}
		w.get("/checkout?without=breaker")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Answer: "refused", Outcome: "bulkhead_full", Breaker: "open", Steps: []stepEvent{}}))
		w.post("/reset", "")
		check("transition "+at(transitionEvent{Dependency: "flaky", From: "open", To: "closed"}), "reset "+at(resetEvent{}))
	})
}

// Every limit tells its decisions by the name that it has in /status.
func TestEventsOfTheOtherLimits(t *testing.T) {
	inBubble(t, Config{CallerRate: 1, CallerBurst: 5, LimitMaxKeys: 1, LimitBurst: 1, MaxInFlight: 1}, func(w *world) {
		stream := w.openStream()
		for _, key := range []string{"a", "b", "b"} {
			w.get("/limited", "X-API-Key: "+key)
		}
		w.begin(w.Context(), "/slow")
		w.get("/slow", "X-API-Key: a")
		var got []string
		for _, e := range stream.take() {
			var d decisionEvent
			if e.name == "decision" && json.Unmarshal([]byte(e.data), &d) == nil {
				got = append(got, d.By+" "+d.Decision)
			}
		}
		want := []string{
			"callers allowed", "limiter allowed", "callers allowed", "limiter allowed", "callers allowed", "limiter overflow",
			"callers allowed", "slow allowed", "callers allowed", "in_flight rejected",
		}
		if !slices.Equal(got, want) {
			w.Errorf("got  %q\nwant %q", got, want)
		}
	})
}
