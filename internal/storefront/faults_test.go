package storefront

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
)

const form = "Content-Type: application/x-www-form-urlencoded"

// put sets a fault as curl -X PUT -d does.
func (w *world) put(path, body string, header ...string) answer {
	w.Helper()
	return w.sendBody(w.Context(), http.MethodPut, path, strings.NewReader(body), append([]string{form}, header...)...)
}

func (w *world) delete(path string) answer {
	w.Helper()
	return w.send(w.Context(), http.MethodDelete, path)
}

func TestFaultsAreScriptedExactlyAndRepeatably(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/faults/flaky"), `200 {"script":"FFS","next":0,"status":503}`)
		w.want(w.put("/faults/flaky", "script=SFM&status=500"), `200 {"script":"SFM","next":0,"status":500}`)
		for n := range 6 {
			w.want(w.get("/faults/flaky"), fmt.Sprintf(`200 {"script":"SFM","next":%d,"status":500}`, n%3))
			w.want(w.get("/flaky"), []string{fmt.Sprintf(`200 {"call":%d}`, n+1), "500 ", `200 {"call":`}[n%3])
		}
		// A PUT replaces the whole setting, and starts again.
		w.want(w.put("/faults/flaky", "retry_after=7"), `200 {"script":"F","next":0,"status":503,"retry_after":"7"}`)
		got := w.get("/flaky")
		w.want(got, "503 ")
		if after := got.header.Get("Retry-After"); after != "7" {
			w.Errorf("Retry-After %q, want 7", after)
		}
		w.want(w.put("/faults/flaky", "latency=1500ms"), `200 {"script":"FFS","next":0,"status":503,"latency":"1.5s"}`)
		start := time.Now()
		w.want(w.get("/flaky"), "503 ")
		if took := time.Since(start); took != 1500*time.Millisecond {
			w.Errorf("took %v, want 1.5s", took)
		}
		w.want(w.put("/faults/flaky", ""), `200 {"script":"FFS","next":0,"status":503}`)
	})
}

func TestFaultsAreOneForEachDependency(t *testing.T) {
	const healthy = `{"script":"S","next":0,"status":503}`
	inBubble(t, Config{}, func(w *world) {
		atStart := `200 {"flaky":{"script":"FFS","next":0,"status":503},"inventory":` + healthy + `,"payments":` + healthy + `,"profiles":` + healthy + `}`
		w.want(w.get("/faults"), atStart)
		w.put("/faults/payments", "script=L")
		w.put("/faults/profiles", "status=400")
		w.want(w.get("/stock/mug"), `200 {"sku":"mug","stock":12}`)
		w.want(w.post("/charge", mug), "502 payment outcome unknown")
		w.want(w.get("/profile/ada"), "502 profile unavailable: 400 Bad Request")
		w.want(w.get("/upstream/payments/charges"), `200 [{"charge_id":"ch_1","amount":1250}]`)
		w.want(w.delete("/faults/profiles"), "200 "+healthy)
		w.want(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`)
		w.want(w.delete("/faults"), atStart)
		w.want(w.get("/upstream/payments/charges"), `200 []`) // counts and ledger too
		w.want(w.post("/charge", mug), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
		w.get("/flaky")
		w.delete("/faults/flaky")
		w.want(w.get("/checkout"), `200 {"call":3}`)
	})
}

func TestBadFaultsAreNamedAndChangeNothing(t *testing.T) {
	const noForm = "400 the body: must be a form, application/x-www-form-urlencoded, as curl -d script=F sends it"
	const noQuery = "400 the query: must be empty; the fields go into the body, as curl -d script=F has them"
	inBubble(t, Config{}, func(w *world) {
		w.put("/faults/flaky", "script=SF")
		w.get("/flaky")
		for _, tt := range []struct{ path, body, kind, want string }{
			{"/faults/flaky", "script=X", form, `400 script: "X" must have only the letters S, F, H, R, M and L, in upper case`},
			{"/faults/flaky", "script=F&status=200", form, "400 status: must be a whole number from 400 to 599"},
			{"/faults/flaky", "latency=31s", form, "400 latency: 31s is out of range, 0s to 30s"},
			{"/faults/flaky", "retry_after=%00", form, "400 retry_after: must be 1 to 64 printable ASCII characters, the first and last of them visible"},
			{"/faults/flaky", "fail=1", form, `400 "fail": unknown field; try script, status, latency or retry_after`},
			{"/faults/flaky", "script=%zz", form, `400 the body: invalid URL escape "%zz"`},
			{"/faults/flaky", "script=S;status=500", form, `400 the body: invalid semicolon separator in query`},
			{"/faults/flaky", `{"script":"F"}`, "Content-Type: application/json", noForm},
			{"/faults/flaky", `{"script":"F"}`, form, noForm}, // as curl -d sends it
			{"/faults/flaky", "script=F", "X-None: 1", noForm},
			{"/faults/flaky?script=F", "", form, noQuery},
			{"/faults/gateway", "script=F", form, "404 unknown dependency; try flaky, inventory, payments or profiles"},
			{"/faults/Flaky", "script=F", form, "404 unknown dependency; try flaky, inventory, payments or profiles"},
		} {
			w.want(w.sendBody(w.Context(), "PUT", tt.path, strings.NewReader(tt.body), tt.kind), tt.want)
			w.want(w.get("/faults/flaky"), `200 {"script":"SF","next":1,"status":503}`)
		}
		for name := range policies {
			if !strings.Contains(errUnknownDependency.Error(), name) {
				w.Errorf("%q does not name %s", errUnknownDependency, name)
			}
		}
		for _, method := range []string{"GET", "DELETE"} {
			w.want(w.send(w.Context(), method, "/faults/gateway"), "404 unknown dependency; try flaky, inventory, payments or profiles")
		}
		w.want(w.put("/faults/flaky", "script=S", "Content-Type: text/plain"), `200 {"script":"S","next":0,"status":503}`) // the first one counts
	})
}

// The server's own deadline for an answer is shorter than the longest latency.
func TestTheLongestLatencyStillAnswers(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.put("/faults/flaky", "script=S&latency=30s")
		w.want(w.get("/flaky"), `200 {"call":1}`)
		if took := time.Since(w.start); took != 30*time.Second {
			w.Errorf("took %v, want 30s", took)
		}
		w.want(w.get("/flaky"), `200 {"call":2}`) // over the same connection
	})
}

// soil changes all that a reset must undo.
func soil(w *world) {
	w.want(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`)
	w.want(w.post("/charge", mug, "Idempotency-Key: k"), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
	w.put("/faults/profiles", "script=F")
	w.want(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`) // a copy
	w.put("/faults/inventory", "script=F")
	for range 25 {
		w.get("/stock/mug")
	}
	w.put("/faults/payments", "script=F&status=500")
	w.put("/faults/flaky", "script=F&latency=1ms")
	for range 4 {
		w.get("/checkout")
		w.get("/limited")
		w.post("/charge", mug)
	}
	w.get("/flaky")
	for range 3 { // shed one
		w.begin(w.Context(), "/slow")
	}
	w.put("/faults/flaky", "script=H")
	for range 20 {
		w.begin(w.Context(), "/checkout?without=breaker")
	}
	w.want(w.get("/checkout?without=breaker"), "503 bulkhead full")
	time.Sleep(10 * time.Second)
}

func TestResetIsACleanSlate(t *testing.T) {
	inBubble(t, Config{LimitBurst: 1, CallerRate: 50, CallerBurst: 100, LimitRate: 0.001}, func(w *world) {
		atStart := w.get("/status").body
		soil(w)
		before := w.get("/status").body
		for _, dirty := range []string{`"state":"open"`, `"rejected":1`, `"script":"H"`, `"keys":1`, `"retries":69`} {
			if !strings.Contains(before, dirty) {
				w.Fatalf("nothing to reset: no %s in %s", dirty, before)
			}
		}
		metrics := w.get("/metrics").body
		w.want(w.post("/reset", ""), "200 reset")
		if got := w.get("/status").body; got != atStart {
			w.Errorf("after the reset:\n%s\nat the start:\n%s", got, atStart)
		}
		for _, line := range []string{
			`dependency_attempts_total{dependency="flaky",outcome="status_5xx"} 12`,
			`bulkhead_rejected_total{dependency="flaky"} 1`,
			`shed_rejected_total{route="/slow"} 1`,
			`ratelimit_decisions_total{decision="rejected"} 3`,
		} {
			for when, body := range map[string]string{"before": metrics, "after": w.get("/metrics").body} {
				if !strings.Contains(body, "\n"+line+"\n") {
					w.Errorf("%s the reset, /metrics lacks %s", when, line)
				}
			}
		}
		w.want(w.get("/limited"), "200 ok")
		w.want(w.get("/checkout"), `200 {"call":3}`)
		w.want(w.post("/charge", mug, "Idempotency-Key: k"), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
		w.put("/faults/profiles", "script=F")
		w.want(w.get("/profile/ada"), "502 profile unavailable: 503 Service Unavailable") // no copy
	})
}

func TestResetForgetsWhatWasRefusedEverywhere(t *testing.T) {
	inBubble(t, Config{MaxInFlight: 1}, func(w *world) {
		slow := w.begin(w.Context(), "/slow")
		w.want(w.get("/limited"), "503 busy")
		for range 101 {
			w.begin(w.Context(), "/events")
		}
		w.post("/reset", "")
		for _, part := range []string{`"in_flight":{"permits":1,"in_use":1,"queue":0,"waiting":0,"rejected":0}`, `"streams":{"permits":100,"in_use":100,"queue":0,"waiting":0,"rejected":0}`} {
			if body := w.get("/status").body; !strings.Contains(body, part) {
				w.Errorf("no %s in %s", part, body)
			}
		}
		<-slow
		w.stop()
		synctest.Wait()
	})
}

// Who still waits for a permit has not met the breaker: a reset closes it for them too.
func TestResetWhileACallWaitsForAPermit(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Bulkhead.Permits, cfg.Flaky.Bulkhead.MaxWait = 1, 10*time.Second
	inBubble(t, cfg, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "F"})
		for range 3 {
			w.get("/checkout")
		}
		w.fault(flaky, simulator.Fault{Script: "H"})
		holds := w.begin(w.Context(), "/checkout?without=breaker,timeout,retry")
		waits := w.begin(w.Context(), "/checkout")
		w.post("/reset", "")
		w.want(<-holds, "504 payment failed: total deadline exceeded after 5s")
		w.want(<-waits, `200 {"call":3}`)
	})
}

// What is under way at a reset keeps its permits, ends well, and counts for nothing.
func TestResetDuringCalls(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F&latency=700ms")
		var calls []<-chan answer
		for range 20 {
			calls = append(calls, w.begin(w.Context(), "/checkout"))
		}
		slow := w.begin(w.Context(), "/slow")
		w.post("/reset", "")
		w.want(w.get("/checkout"), "503 bulkhead full")
		if got := w.snapshot(flaky); got.Bulkhead.InUse != 20 || got.Bulkhead.Rejected != 1 || got.Retry.Calls != 0 {
			w.Errorf("after the reset: %+v", got)
		}
		w.want(<-slow, "200 done")
		served := 0
		for _, c := range calls {
			if a := <-c; a.status == 200 {
				served++
			} else {
				w.want(a, "502 payment failed: 503 Service Unavailable")
			}
		}
		if served == 0 {
			w.Error("none was retried against the healed dependency")
		}
		if got := w.snapshot(flaky); got.Bulkhead.InUse != 0 || got.Retry.Calls != 0 || got.Breaker.State != "closed" || got.Breaker.Failures != 0 {
			w.Errorf("at the end: %+v", got)
		}
	})
}

// Closing a breaker by a reset is a change of state, and is told as one.
func TestResetTellsWhatItCloses(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		w.post("/reset", "")
		synctest.Wait()
		if log := w.log.String(); strings.Count(log, `level=INFO msg="breaker transition" dependency=flaky from=open to=closed`) != 1 {
			w.Errorf("logged:\n%s", log)
		}
		if got := w.snapshot(flaky).Breaker.Transitions; got != 0 {
			w.Errorf("%d transitions after the reset, want 0", got)
		}
	})
}

// Every letter does on each dependency what it says.
func TestEveryLetterOnEveryDependency(t *testing.T) {
	ask := map[string]func(w *world) answer{
		flaky:     func(w *world) answer { return w.get("/flaky") },
		inventory: func(w *world) answer { return w.get("/upstream/inventory/stock/mug") },
		payments:  func(w *world) answer { return w.post("/upstream/payments/charge", mug) },
		profiles:  func(w *world) answer { return w.get("/upstream/profiles/ada") },
	}
	inBubble(t, Config{}, func(w *world) {
		w.client.Transport.(*http.Transport).DisableKeepAlives = true // or net/http repeats what was lost, unasked
		for name := range policies {
			w.put("/faults/"+name, "script=SFML")
			var got []string
			for range 4 {
				a := ask[name](w)
				got = append(got, fmt.Sprint(a.status, " ", json.Valid([]byte(a.body))))
			}
			if want := []string{"200 true", "503 false", "200 false", "0 false"}; !slices.Equal(got, want) {
				w.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		w.want(w.get("/upstream/payments/charges"), `200 [{"charge_id":"ch_1","amount":1250},{"charge_id":"ch_2","amount":1250}]`)
		w.fault(flaky, simulator.Fault{Script: "H"})
		hanging := w.begin(w.Context(), "/flaky")
		time.Sleep(time.Hour)
		select {
		case a := <-hanging:
			w.Errorf("H answered %v", a)
		default:
		}
	})
}
