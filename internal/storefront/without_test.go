package storefront

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/storefront/internal/simulator"
)

// What each layer is worth: the same trouble with it and without.
func TestWithoutALayer(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		// Retry hides two failures of three.
		w.want(w.get("/checkout?without=retry,breaker"), "502 payment failed: 503 Service Unavailable")
		w.want(w.get("/checkout?without=breaker&without=retry"), "502 payment failed: 503 Service Unavailable")
		w.want(w.get("/checkout?without=retry"), `200 {"call":3}`)
		if got := w.snapshot(flaky); got.Retry.Calls != 0 || got.Breaker.Failures != 0 {
			w.Errorf("layers left out counted: %+v", got)
		}

		// The breaker spares what is down.
		w.fault(flaky, simulator.Fault{Script: "F"})
		for range 3 {
			w.want(w.get("/checkout"), "502 payment failed: 503 Service Unavailable")
		}
		w.want(w.get("/checkout"), "503 circuit open")
		w.fault(flaky, simulator.Fault{Script: "S"})
		got := w.get("/checkout?without=breaker")
		w.want(got, `200 {"call":1}`)
		if state := got.header.Get("Storefront-Breaker"); state != "open" {
			w.Errorf("Storefront-Breaker %q after a call around it, want open", state)
		}
		w.post("/reset", "")

		// The timeout gives up on what hangs, and tries again.
		w.fault(flaky, simulator.Fault{Script: "HS"})
		start := time.Now()
		w.want(w.get("/checkout"), `200 {"call":2}`)
		if took := time.Since(start); took > 900*time.Millisecond {
			w.Errorf("took %v, want a timeout and a wait", took)
		}
		start = time.Now()
		w.want(w.get("/checkout?without=timeout"), "504 payment failed: total deadline exceeded after 5s")
		if took := time.Since(start); took != 5*time.Second {
			w.Errorf("took %v, want the total deadline, 5s", took)
		}

		// The bulkhead bounds how many wait for it.
		w.fault(flaky, simulator.Fault{Script: "H"})
		for range 20 {
			w.begin(w.Context(), "/checkout")
		}
		w.want(w.get("/checkout"), "503 bulkhead full")
		w.fault(flaky, simulator.Fault{Script: "S"})
		w.want(w.get("/checkout?without=bulkhead"), `200 {"call":1}`)
		if got := w.snapshot(flaky).Bulkhead; got.InUse != 20 || got.Rejected != 1 {
			w.Errorf("%+v", got)
		}
	})
}

// Each layer goes alone: the other three see the call.
func TestWithoutOneLayerTheOthersStay(t *testing.T) {
	for _, tt := range []struct {
		without         string
		inUse, failures int
		calls           uint64
		took            time.Duration
	}{
		{"", 1, 1, 1, 800 * time.Millisecond},
		{"?without=bulkhead", 0, 1, 1, 800 * time.Millisecond},
		{"?without=breaker", 1, 0, 1, 800 * time.Millisecond},
		{"?without=retry", 1, 1, 0, 800 * time.Millisecond},
		{"?without=timeout", 1, 1, 1, 5 * time.Second},
	} {
		cfg := Config{}
		cfg.Flaky.Retry.Attempts = 1
		inBubble(t, cfg, func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "H"})
			done := w.begin(w.Context(), "/checkout"+tt.without)
			if got := w.snapshot(flaky).Bulkhead.InUse; got != tt.inUse {
				w.Errorf("%q: %d permits in use, want %d", tt.without, got, tt.inUse)
			}
			<-done
			got := w.snapshot(flaky)
			if got.Breaker.Failures != tt.failures || got.Retry.Calls != tt.calls || time.Since(w.start) != tt.took {
				w.Errorf("%q: %+v after %v, want %+v", tt.without, got, time.Since(w.start), tt)
			}
		})
	}
}

// A connection that does not come about has no limit of its own either.
func TestWithoutTimeoutADialMayTakeTheWholeDeadline(t *testing.T) {
	stuck := Config{FlakyURL: "http://192.0.2.1/"}
	for query, want := range map[string]string{
		"":                       "502 payment failed: attempt timed out after 800ms",
		"?without=timeout,retry": "504 payment failed: total deadline exceeded after 5s",
	} {
		inBubble(t, stuck, func(w *world) {
			w.service.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				ctx := withLocalAddr(r.Context(), stuckAddr{w.network.Addr("127.0.0.1:3000")})
				w.service.calling(flaky, w.service.checkout)(rw, r.WithContext(ctx))
			})
			w.want(w.get("/checkout"+query), want)
			time.Sleep(10 * time.Second) // until net/http has given up dialing
		})
	}
}

// stuckAddr is an address from which no dial succeeds, or fails by itself.
type stuckAddr struct{ net.Addr }

func (stuckAddr) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("dial: %w", ctx.Err())
}

func TestWithoutOnEachRoute(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(inventory, simulator.Fault{Script: "F"})
		w.want(w.get("/stock/mug?without=bulkhead,breaker,retry,timeout"), `200 {"sku":"mug","stock":null,"note":"check availability"}`)
		w.fault(payments, simulator.Fault{Script: "FS"})
		w.want(w.post("/charge?without=retry", mug, "Idempotency-Key: k"), "502 payment failed: 503 Service Unavailable")
		w.fault(profiles, simulator.Fault{Script: "FS"})
		w.want(w.get("/profile/ada?without=retry"), "502 profile unavailable: 503 Service Unavailable")
		w.want(w.get("/profile/ada?without=retry"), `200 {"id":"ada","name":"Ada Lovelace"}`)
		for _, name := range []string{inventory, payments, profiles} {
			if got := w.snapshot(name).Retry.Calls; got != 0 {
				w.Errorf("%s: %d calls went through retry", name, got)
			}
		}
		w.want(w.get("/limited?without=retries"), "200 ok") // calls nothing, so there is nothing to leave out
	})
}

func TestUnknownLayersAreRefused(t *testing.T) {
	const layers = " is not bulkhead, breaker, retry or timeout; commas separate several"
	inBubble(t, Config{}, func(w *world) {
		for query, want := range map[string]string{
			"without=":                           `400 without: ""` + layers,
			"without=retry,":                     `400 without: ""` + layers,
			"without=Retry":                      `400 without: "Retry"` + layers,
			"without=retry, breaker":             `400 without: " breaker"` + layers,
			"without=retry&without=all":          `400 without: "all"` + layers,
			"without=a%0ab":                      `400 without: "a\nb"` + layers,
			"without=" + strings.Repeat("x", 99): `400 without: "` + strings.Repeat("x", 40) + `"` + layers,
			"without=retry;breaker":              "400 the query: invalid semicolon separator in query",
			"%77ithout=all":                      `400 without: "all"` + layers,
			"without=retry&without=%zz":          `400 the query: invalid URL escape "%zz"`,
			"without=%zz":                        `400 the query: invalid URL escape "%zz"`,
		} {
			for _, path := range []string{"/checkout", "/stock/mug", "/profile/ada"} {
				got := w.get(path + "?" + strings.ReplaceAll(query, " ", "%20"))
				w.want(got, want)
				if got.header.Get("Storefront-Attempts") != "" {
					w.Errorf("%s?%s: a call was made", path, query)
				}
			}
			w.want(w.post("/charge?"+strings.ReplaceAll(query, " ", "%20"), mug), want)
		}
		for _, ours := range []string{"color=red", "x=100%", "a;b", "x=without"} { // none of ours
			w.want(w.get("/stock/mug?"+ours), `200 {"sku":"mug","stock":12}`)
		}
	})
}

func TestHeadersTellHowTheCallWent(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	inBubble(t, cfg, func(w *world) {
		check := func(a answer, want, attempts, breaker, fallback, timing string) {
			t.Helper()
			w.want(a, want)
			for name, want := range map[string]string{
				"Storefront-Attempts": attempts, "Storefront-Breaker": breaker, "Storefront-Fallback": fallback, "Server-Timing": timing,
			} {
				if got := strings.Join(a.header[http.CanonicalHeaderKey(name)], "|"); got != want || want == "" && a.header[http.CanonicalHeaderKey(name)] != nil {
					t.Errorf("%s: %s: %q, want %q", a, name, got, want)
				}
			}
		}
		w.fault(flaky, simulator.Fault{Script: "FFS", Latency: 50 * time.Millisecond})
		check(w.get("/checkout"), `200 {"call":3}`, "3", "closed", "",
			`attempt;desc="1: 503";dur=50.0, wait;dur=100.0, attempt;desc="2: 503";dur=50.0, wait;dur=200.0, attempt;desc="3: 200";dur=50.0`)
		w.fault(flaky, simulator.Fault{Script: "HRM"})
		check(w.get("/checkout"), "502 payment failed: the response is not JSON", "3", "closed", "",
			`attempt;desc="1: timeout";dur=800.0, wait;dur=100.0, attempt;desc="2: connection";dur=0.0, wait;dur=200.0, attempt;desc="3: undecodable";dur=0.0`)
		w.fault(flaky, simulator.Fault{Status: 404, Script: "F"})
		check(w.get("/checkout"), "502 payment failed: 404 Not Found", "1", "closed", "", `attempt;desc="1: 404";dur=0.0`)
		w.fault(flaky, simulator.Fault{Script: "F"})
		const four = `attempt;desc="1: 503";dur=0.0, wait;dur=100.0, attempt;desc="2: 503";dur=0.0, wait;dur=200.0, attempt;desc="3: 503";dur=0.0, wait;dur=400.0, attempt;desc="4: 503";dur=0.0`
		for _, state := range []string{"closed", "closed", "open"} {
			check(w.get("/checkout"), "502 payment failed: 503 Service Unavailable", "4", state, "", four)
		}
		check(w.get("/checkout"), "503 circuit open", "0", "open", "", "")

		w.fault(inventory, simulator.Fault{Script: "H"})
		check(w.get("/stock/mug"), `200 {"sku":"mug","stock":null,"note":"check availability"}`, "1", "closed", "default", `attempt;desc="1: timeout";dur=300.0`)
		check(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`, "1", "closed", "", `attempt;desc="1: 200";dur=0.0`)
		w.fault(profiles, simulator.Fault{Script: "F", Status: 500})
		check(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`, "1", "closed", "cached", `attempt;desc="1: 500";dur=0.0`)
		w.fault(payments, simulator.Fault{Script: "L"})
		check(w.post("/charge", mug), "502 payment outcome unknown", "1", "closed", "", `attempt;desc="1: connection";dur=0.0`)

		check(w.post("/charge", "{}"), "400 amount: must be a whole number from 1 to 99999999", "", "", "", "") // no call was made
		for _, path := range []string{"/limited", "/flaky", "/status"} {
			if got := w.get(path).header.Get("Storefront-Attempts"); got != "" {
				t.Errorf("%s: Storefront-Attempts %q", path, got)
			}
		}
	})
}
