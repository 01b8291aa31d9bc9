package storefront

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
)

// claims are sentences of the README and the lessons, each with a test, from the
// outside, that the thing really happens. Where a page shows what a command prints,
// that is the test.
var claims = []struct {
	says string
	cfg  Config
	test func(w *world)
}{
	{"a payment service that fails two calls of three", Config{}, func(w *world) {
		for n := 1; n <= 6; n++ {
			if got, fails := w.get("/flaky").status, n%3 != 0; (got == 503) != fails {
				w.Errorf("call %d: %d", n, got)
			}
		}
	}},
	{"It failed twice, was retried twice, and the caller saw only success.", Config{}, func(w *world) {
		got := w.get("/checkout")
		if got.status != 200 || !strings.HasPrefix(got.header.Get("Server-Timing"), `attempt;desc="1: 503"`) || got.header.Get("Storefront-Attempts") != "3" {
			w.Errorf("%v %v", got, got.header)
		}
	}},
	{"parallel checkouts share one count of `/flaky`, and some of them run out of attempts (502)", Config{}, func(w *world) {
		seen := map[int]int{}
		for rounds := 0; seen[502] == 0 && rounds < 100; rounds++ {
			var calls []<-chan answer
			for range 20 {
				calls = append(calls, w.begin(w.Context(), "/checkout?without=breaker"))
			}
			for _, c := range calls {
				seen[(<-c).status]++
			}
		}
		if seen[200] == 0 || seen[502] == 0 || len(seen) != 2 {
			w.Errorf("%v", seen)
		}
	}},
	{"refused the fourth request. A second later there is one more token. Another key has a bucket of its own; requests without a key share one.", Config{}, func(w *world) {
		for i, want := range []int{200, 200, 200, 429} {
			if got := w.get("/limited", "X-API-Key: k1").status; got != want {
				w.Errorf("request %d: %d, want %d", i+1, got, want)
			}
		}
		w.want(w.get("/limited", "X-API-Key: k2"), "200 ok")
		time.Sleep(time.Second)
		w.want(w.get("/limited", "X-API-Key: k1"), "200 ok")
		w.want(w.get("/limited", "X-API-Key: k1"), "429 rate limit exceeded")
		for range 3 {
			w.get("/limited")
		}
		w.want(w.get("/limited"), "429 rate limit exceeded")
	}},
	{"The third was shed: refused at once, not queued behind work of two seconds.", Config{}, func(w *world) {
		first, second := w.begin(w.Context(), "/slow"), w.begin(w.Context(), "/slow")
		w.want(w.get("/slow"), "503 busy")
		if took := time.Since(w.start); took != 0 {
			w.Errorf("refused after %v", took)
		}
		w.want(<-first, "200 done")
		w.want(<-second, "200 done")
	}},
	{"When inventory fails, hangs, or its breaker is open, the answer is still a 200", Config{}, func(w *world) {
		for _, script := range []string{"F", "H", "R", "M"} {
			w.put("/faults/inventory", "script="+script)
			w.want(w.get("/stock/mug"), `200 {"sku":"mug","stock":null,"note":"check availability"}`)
		}
		for w.statusOf(inventory).Breaker.State == "closed" {
			w.get("/stock/mug")
		}
		got := w.get("/stock/mug")
		w.want(got, `200 {"sku":"mug","stock":null,"note":"check availability"}`)
		if got.header.Get("Storefront-Attempts") != "0" {
			w.Errorf("%v", got.header)
		}
	}},
	{"With an `Idempotency-Key` the payment service recognises a repeat, so a charge that failed may be tried again; without, it never is", Config{}, func(w *world) {
		w.put("/faults/payments", "script=FS")
		got := w.post("/charge", mug, "Idempotency-Key: k")
		w.want(got, `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
		w.put("/faults/payments", "script=FS")
		got = w.post("/charge", mug)
		w.want(got, "502 payment failed: 503 Service Unavailable")
		if got.header.Get("Storefront-Attempts") != "1" {
			w.Errorf("%v", got.header)
		}
	}},
	{"inventory can hang with all its 20 permits taken while checkouts go on", Config{}, func(w *world) {
		w.put("/faults/inventory", "script=H")
		for range 20 {
			w.begin(w.Context(), "/stock/mug")
		}
		if got := w.statusOf(inventory).Bulkhead.InUse; got != 20 {
			w.Errorf("%d permits taken", got)
		}
		w.want(w.get("/checkout"), `200 {"call":3}`)
	}},
	{"A 4xx is a healthy answer.", Config{}, func(w *world) {
		w.put("/faults/flaky", "status=404")
		for range 50 {
			w.want(w.get("/checkout"), "502 payment failed: 404 Not Found")
		}
	}},
	{"callers with less patience than the timeout never open a breaker", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=H")
		for range 50 {
			ctx, hangUp := context.WithTimeout(w.Context(), 100*time.Millisecond)
			w.send(ctx, "GET", "/checkout")
			hangUp()
		}
		if got := w.statusOf(flaky).Breaker.State; got != "closed" {
			w.Errorf("%s", got)
		}
	}},
	{"replaces the whole setting: what is not given is the default", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=SF&latency=1s&status=500")
		w.get("/flaky")
		w.want(w.put("/faults/flaky", "script=SF"), `200 {"script":"SF","next":0,"status":503}`)
	}},
	{"`DELETE /faults` makes all four as after a start, the charges forgotten.", Config{}, func(w *world) {
		for _, name := range []string{flaky, inventory, payments, profiles} {
			w.put("/faults/"+name, "script=H")
		}
		w.delete("/faults")
		w.want(w.get("/checkout"), `200 {"call":3}`)
		w.want(w.get("/stock/mug"), `200 {"sku":"mug","stock":12}`)
		w.want(w.post("/charge", mug), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
		w.want(w.get("/profile/ada"), `200 {"id":"ada","name":"Ada Lovelace"}`)
	}},
	{"Three failed calls in a row opened the breaker, and for ten seconds it refuses every call at once.", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.want(w.get("/checkout"), "502 payment failed: 503 Service Unavailable")
		}
		opened := time.Now()
		for _, after := range []time.Duration{0, 5 * time.Second, 10 * time.Second} {
			time.Sleep(time.Until(opened.Add(after)))
			w.want(w.get("/checkout"), "503 circuit open")
		}
		if took := time.Since(opened); took != 10*time.Second {
			w.Errorf("the refusals took %v", took-10*time.Second)
		}
	}},
	{"`Retry-After` is the time left, but of `/checkout` never over 5 s, so that a workshop asks again early.", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		for _, want := range []string{"5", "3"} {
			if got := w.get("/checkout").header.Get("Retry-After"); got != want {
				w.Errorf("Retry-After %s, want %s", got, want)
			}
			time.Sleep(7 * time.Second)
		}
	}},
	{"An abandoned probe counts as nothing; the next call is the probe.", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		time.Sleep(11 * time.Second)
		w.put("/faults/flaky", "script=HS")
		ctx, hangUp := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer hangUp()
		w.send(ctx, "GET", "/checkout")
		synctest.Wait()
		if got := w.statusOf(flaky).Breaker.State; got != "half_open" {
			w.Errorf("%s after the abandoned probe", got)
		}
		w.want(w.get("/checkout"), `200 {"call":2}`)
		if got := w.statusOf(flaky).Breaker.State; got != "closed" {
			w.Errorf("%s after the next", got)
		}
	}},
	{"all calls to one dependency together get at most 0.2 retries a call, or 50 a second if that is more", Config{}, func(w *world) {
		w.put("/faults/profiles", "script=F")
		var calls []<-chan answer
		for range 600 {
			calls = append(calls, w.begin(w.Context(), "/profile/ada?without=breaker,bulkhead"))
		}
		retried := 0
		for _, c := range calls {
			if (<-c).header.Get("Storefront-Attempts") == "2" {
				retried++
			}
		}
		if retried != 500 {
			w.Errorf("%d of 600 calls at once were retried, want 500", retried)
		}
	}},
	{"Every 429 and 503 above carries `Retry-After`.", Config{MaxInFlight: 3}, func(w *world) {
		refused := map[string]string{}
		keep := func(a answer) {
			if a.status == 429 || a.status == 503 {
				refused[a.body] = a.header.Get("Retry-After")
			}
		}
		w.put("/faults/flaky", "script=F")
		w.put("/faults/payments", "script=F")
		for range 4 {
			keep(w.get("/limited"))
		}
		for range 4 {
			keep(w.get("/checkout"))
			keep(w.post("/charge", mug))
		}
		w.begin(w.Context(), "/slow")
		w.begin(w.Context(), "/slow")
		keep(w.get("/slow"))
		w.begin(w.Context(), "/slow?")
		w.stop()
		synctest.Wait()
		keep(w.get("/checkout"))
		for _, text := range []string{"rate limit exceeded", "circuit open", "payment gateway unavailable", "busy", "draining"} {
			if refused[text] == "" {
				w.Errorf("%s: no Retry-After in %v", text, refused)
			}
		}
	}},
	{"For a 504, have `flaky` hang and ask for `/checkout?without=timeout`.", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=H")
		w.want(w.get("/checkout?without=timeout"), "504 payment failed: total deadline exceeded after 5s")
	}},
	{"Any other status, 500 too, and a malformed body would only come again.", Config{}, func(w *world) {
		for fault, attempts := range map[string]string{
			"script=H": "4", "script=R": "4", "script=L": "4", "status=429": "4", "status=502": "4", "status=503": "4", "status=504": "4",
			"script=M": "1", "status=500": "1", "status=501": "1", "status=505": "1", "status=400": "1", "status=408": "1", "status=425": "1",
		} {
			w.post("/reset", "")
			w.put("/faults/flaky", fault)
			if got := w.get("/checkout").header.Get("Storefront-Attempts"); got != attempts {
				w.Errorf("%s: %s attempts, want %s", fault, got, attempts)
			}
		}
	}},
	{"But an open breaker stays open until a probe succeeds. `POST /reset` is a clean slate", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		w.delete("/faults")
		w.want(w.get("/checkout"), "503 circuit open")
		time.Sleep(10*time.Second + 1)
		w.want(w.get("/checkout"), `200 {"call":3}`)
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		w.post("/reset", "")
		w.want(w.get("/checkout"), `200 {"call":3}`)
	}},
	{"They share a cap of 1024 requests at once", Config{SlowPermits: 2000}, func(w *world) {
		for range 1024 {
			w.begin(w.Context(), "/slow")
		}
		w.want(w.get("/limited"), "503 busy")
		w.want(w.get("/flaky"), "503 ") // no business route
		w.want(w.get("/healthz"), "200 ok")
	}},
	{"An open breaker counts `retry_after_ms` down to 0; then its `probe_due` is true, until somebody calls.", Config{}, func(w *world) {
		w.put("/faults/flaky", "script=F")
		for range 3 {
			w.get("/checkout")
		}
		for _, want := range []string{"10000 false", "6000 false", "2000 false", "0 true", "0 true"} {
			if b := w.statusOf(flaky).Breaker; fmt.Sprint(b.RetryAfter, b.ProbeDue) != want {
				w.Errorf("%+v, want %s", b, want)
			}
			time.Sleep(4 * time.Second)
		}
		w.get("/checkout")
		if b := w.statusOf(flaky).Breaker; b.ProbeDue || b.RetryAfter != 10000 {
			w.Errorf("after a call: %+v", b)
		}
	}},
	{"a path of no route is `other`, and code 499 got no answer: the caller hung up, or a simulator broke the connection", Config{}, func(w *world) {
		w.get("/nope")
		w.client.Transport.(*http.Transport).DisableKeepAlives = true // or net/http asks again
		w.put("/faults/flaky", "script=RL")
		w.get("/flaky")
		w.get("/flaky")
		ctx, hangUp := context.WithTimeout(w.Context(), time.Second)
		defer hangUp()
		w.send(ctx, "GET", "/slow")
		synctest.Wait()
		got := w.scrape()
		if got[`http_requests_total{code="404",route="other"}`] != "1" || got[`http_requests_total{code="499",route="/slow"}`] != "1" || got[`http_requests_total{code="499",route="/flaky"}`] != "2" {
			w.Errorf("%v", got)
		}
	}},
	{"a POST, PUT or DELETE for a page that is not this server's", Config{}, func(w *world) {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			w.want(w.send(w.Context(), method, "/faults", "Sec-Fetch-Site: cross-site"), "403 a web page of another origin may not do this")
		}
	}},
	{"`-controls on` gives them to everybody, `-controls off` to nobody (403).", Config{Controls: ControlsOff}, func(w *world) {
		w.want(w.put("/faults/flaky", "script=F"), "403 controls are off, by -controls off")
		w.want(w.post("/reset", ""), "403 controls are off, by -controls off")
		w.want(w.get("/checkout?without=retry"), "403 controls are off, by -controls off")
		w.service.cfg.Controls = ControlsOn
		w.want(w.raw("POST /reset", "Host: shop.example", ""), "200 reset")
	}},
	{"idempotency: it knows the last 10,000 keys", Config{}, func(w *world) {
		for i := range 10_001 {
			w.post("/upstream/payments/charge", mug, fmt.Sprint("Idempotency-Key: ", i))
		}
		w.want(w.post("/charge", mug, "Idempotency-Key: 1"), `200 {"charge_id":"ch_2","amount":1250,"replayed":true}`)
		w.want(w.post("/charge", mug, "Idempotency-Key: 0"), `200 {"charge_id":"ch_10002","amount":1250,"replayed":false}`)
	}},
	{"A refused call made no attempt: it has `Storefront-Attempts: 0` in its header, and in the log no line of an attempt.", Config{Flaky: dependency.Policy{Bulkhead: bulkhead.Config{Permits: 1}}}, func(w *world) {
		w.put("/faults/flaky", "script=H")
		first := w.begin(w.Context(), "/checkout")
		synctest.Wait()
		got := w.get("/checkout")
		w.want(got, "503 bulkhead full")
		if attempts := got.header.Get("Storefront-Attempts"); attempts != "0" {
			w.Errorf("Storefront-Attempts: %s", attempts)
		}
		if log := w.log.String(); strings.Contains(log, "msg=attempt") || !strings.Contains(log, "msg=request") {
			w.Errorf("log:\n%s", log)
		}
		<-first
	}},
	{"`/healthz` has no part in it.", Config{SlowPermits: 1, MaxInFlight: 1}, func(w *world) {
		first := w.begin(w.Context(), "/slow")
		synctest.Wait()
		w.want(w.get("/slow"), "503 busy")
		w.want(w.get("/healthz"), "200 ok")
		<-first
	}},
	{"A limit by address does not ask what a client says of itself.", Config{CallerRate: 1, CallerBurst: 3}, func(w *world) {
		for i, want := range []int{200, 200, 200, 429, 429} {
			forwarded := fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i)
			if got := w.get("/stock/mug", forwarded, "Forwarded: for=10.0.0.9").status; got != want {
				w.Errorf("request %d: %d, want %d", i+1, got, want)
			}
		}
		w.want(w.get("/stock/mug", "X-API-Key: invented"), `200 {"sku":"mug","stock":12}`)
	}},
	{"Without its bulkhead these 22 would take every place, for as long as the 300 ms that they have.", Config{MaxInFlight: 22}, func(w *world) {
		for _, tt := range []struct{ query, during, after string }{
			{"", `200 {"call":1}`, `200 {"call":2}`},
			{"?without=bulkhead", "503 busy", `200 {"call":1}`},
		} {
			w.post("/reset", "")
			w.put("/faults/inventory", "script=H")
			w.put("/faults/flaky", "script=S")
			var calls []<-chan answer
			for range 22 {
				calls = append(calls, w.begin(w.Context(), "/stock/mug"+tt.query))
			}
			time.Sleep(299 * time.Millisecond)
			w.want(w.get("/checkout"), tt.during)
			time.Sleep(2 * time.Millisecond)
			w.want(w.get("/checkout"), tt.after)
			for _, c := range calls {
				<-c
			}
		}
	}},
}
