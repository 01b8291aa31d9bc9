package storefront

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// sendForm has the service send something to itself.
func (w *world) sendForm(body string) answer {
	w.Helper()
	return w.post("/send", body, form)
}

// tally counts equal lines: "3x 200, 2x 429 rate limit exceeded".
func tally(text string) string {
	count := map[string]int{}
	for line := range strings.Lines(text) {
		count[strings.TrimSuffix(line, "\n")]++
	}
	var all []string
	for line, n := range count {
		all = append(all, fmt.Sprintf("%dx %s", n, line))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// wantLines compares the lines of a 200, in whatever order.
func (w *world) wantLines(got answer, want string) {
	w.Helper()
	if got.status != 200 || tally(got.body) != want || !strings.HasSuffix(got.body, "\n") {
		w.Errorf("at %v: got %d %q, want %q", time.Since(w.start), got.status, got.body, want)
	}
}

// lineAt is a line of an answer, and when it came.
type lineAt struct {
	after time.Duration
	line  string
}

// sendLines begins to send, and returns the lines as they come.
func (w *world) sendLines(ctx context.Context, body string) <-chan lineAt {
	w.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", self+"/send", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	start, lines := time.Now(), make(chan lineAt, 100)
	go func() {
		defer close(lines)
		resp, err := w.client.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
			lines <- lineAt{time.Since(start), scan.Text()}
		}
	}()
	synctest.Wait()
	return lines
}

func TestEachAnswerToWhatIsSentBecomesALine(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		got := w.sendForm("route=/stock/mug")
		w.want(got, "200 200\n")
		if got.header.Get("Content-Type") != "text/plain; charset=utf-8" || got.header.Get("Cache-Control") != "no-store" {
			w.Errorf("%v", got.header)
		}
		for _, route := range []string{"/checkout", "/stock/mug", "/charge", "/profile/ada", "/limited", "/slow"} {
			w.want(w.sendForm("route="+route), "200 200\n")
		}
		w.want(w.get(ledger), `200 [{"charge_id":"ch_1","amount":1250}]`)
		w.fault(inventory, simulator.Fault{Script: "F"})
		w.want(w.sendForm("route=/stock/mug"), "200 200 fallback: default\n")
		w.fault(profiles, simulator.Fault{Script: "F"})
		w.want(w.sendForm("route=/profile/ada"), "200 200 fallback: cached\n")
		w.fault(payments, simulator.Fault{Script: "L"})
		w.want(w.sendForm("route=/charge"), "200 502 payment outcome unknown\n")
		w.fault(flaky, simulator.Fault{Script: "F"})
		w.wantLines(w.sendForm("route=/checkout&count=3"), "3x 502 payment failed: 503 Service Unavailable")
		w.want(w.sendForm("route=/checkout"), "200 503 circuit open\n")
		w.wantLines(w.sendForm("route=/limited&count=5"), "2x 429 rate limit exceeded, 3x 200")
	})
}

func TestBadFieldsOfSendNameThemselves(t *testing.T) {
	const routes = " is not /checkout, /stock/mug, /charge, /profile/ada, /limited or /slow"
	const count = "400 count: must be a whole number from 1 to 50"
	const key = "400 key: must be 1 to 128 visible ASCII characters"
	const layers = " is not bulkhead, breaker, retry or timeout; commas separate several"
	inBubble(t, Config{}, func(w *world) {
		for body, want := range map[string]string{
			"":                                    `400 route: ""` + routes,
			"count=1":                             `400 route: ""` + routes,
			"route=":                              `400 route: ""` + routes,
			"route=/stock/tee":                    `400 route: "/stock/tee"` + routes,
			"route=/reset":                        `400 route: "/reset"` + routes,
			"route=/send":                         `400 route: "/send"` + routes,
			"route=/checkout?without=retry":       `400 route: "/checkout?without=retry"` + routes,
			"route=http://evil.example/checkout":  `400 route: "http://evil.example/checkout"` + routes,
			"route=" + strings.Repeat("x", 99):    `400 route: "` + strings.Repeat("x", 40) + `"` + routes,
			"route=/slow&route=/slow":             "400 route: given twice",
			"route=/slow&count=0":                 count,
			"route=/slow&count=51":                count,
			"route=/slow&count=-1":                count,
			"route=/slow&count=":                  count,
			"route=/slow&count=%2B1":              count,
			"route=/slow&count=1.5":               count,
			"route=/slow&count=1e1":               count,
			"route=/slow&count=x":                 count,
			"route=/slow&count=99999999999999999": count,
			"route=/slow&count=9&count=9":         "400 count: given twice",
			"route=/slow&key=":                    key,
			"route=/slow&key=a+b":                 key,
			"route=/slow&key=a%0d%0aX:b":          key,
			"route=/slow&key=k%C3%A4":             key,
			"route=/slow&key=" + ones(129):        key,
			"route=/slow&key=a&key=a":             "400 key: given twice",
			"route=/checkout&without=":            `400 without: ""` + layers,
			"route=/checkout&without=all":         `400 without: "all"` + layers,
			"route=/checkout&without=retry,Retry": `400 without: "Retry"` + layers,
			"route=/slow&without=a&without=b":     "400 without: given twice",
			"route=/slow&method=DELETE":           `400 "method": unknown field; try route, count, without or key`,
			"route=/slow&Count=1":                 `400 "Count": unknown field; try route, count, without or key`,
			"route=/slow&" + ones(99) + "=1":      `400 "` + ones(40) + `": unknown field; try route, count, without or key`,
			"route=/slow;count=1":                 "400 the body: invalid semicolon separator in query",
			`{"route":"/slow"}`:                   "400 the body: must be a form, application/x-www-form-urlencoded, as curl -d script=F sends it",
		} {
			w.want(w.sendForm(body), want)
		}
		w.want(w.post("/send?route=/slow", "", form), "400 the query: must be empty; the fields go into the body, as curl -d script=F has them")
		if got := w.counted(); got != "" {
			w.Errorf("%q was sent all the same", got)
		}
		w.wantLines(w.sendForm("route=/limited&key="+ones(128)), "1x 200")
		w.wantLines(w.sendForm("route=/limited&key=!~%26%3D%22"), "1x 200") // escaped in the form alone
	})
}

func ones(n int) string { return strings.Repeat("1", n) }

func TestOneToFiftyAreSent(t *testing.T) {
	for body, want := range map[string]string{"": "1x 200", "&count=1": "1x 200", "&count=2": "2x 200", "&count=50": "50x 200"} {
		inBubble(t, Config{LimitBurst: 99}, func(w *world) {
			w.wantLines(w.sendForm("route=/limited"+body), want)
			if got := w.counted(); got != "served:"+strings.TrimSuffix(want, "x 200") {
				w.Errorf("count %q: got %s", body, got)
			}
		})
	}
}

func TestSendIsAControl(t *testing.T) {
	inBubble(t, Config{Controls: ControlsOff}, func(w *world) {
		w.want(w.sendForm("route=/limited"), "403 controls are off, by -controls off")
		w.want(w.sendForm("route=/nope"), "403 controls are off, by -controls off")
		if got := w.counted(); got != "" {
			w.Errorf("%q was sent all the same", got)
		}
	})
	inBubble(t, Config{}, func(w *world) {
		const body = "route=/limited"
		w.want(w.raw("POST /send", "Host: evil.example\r\n"+form, body), "403 controls are for requests to localhost or an IP address")
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Origin: http://evil.example", "Origin: null"} {
			w.want(w.post("/send", body, form, header), "403 a web page of another origin may not do this")
		}
		if got := w.counted(); got != "" {
			w.Errorf("%q was sent all the same", got)
		}
		w.want(w.post("/send", body, form, "Sec-Fetch-Site: same-origin", "Origin: "+self), "200 200\n")
	})
	// To whatever Host the control came: what is sent goes to this very service.
	inBubble(t, Config{Controls: ControlsOn}, func(w *world) {
		w.want(w.raw("POST /send", "Host: evil.example\r\n"+form, "route=/checkout&without=retry,breaker"), "200 502 payment failed: 503 Service Unavailable\n")
	})
}

// All fifty at once: twenty get a permit and hang, the others learn so at once, and each
// line comes when its answer does.
func TestWhatIsSentGoesOutAtOnceAndLinesComeAsTheyCome(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "H"})
		lines := w.sendLines(w.Context(), "route=/checkout&count=50&without=timeout")
		if len(lines) != 30 || w.snapshot(flaky).Bulkhead.InUse != 20 {
			w.Errorf("%d lines at once and %d permits in use, want 30 and 20", len(lines), w.snapshot(flaky).Bulkhead.InUse)
		}
		count := map[lineAt]int{}
		for l := range lines {
			count[l]++
		}
		if want := (lineAt{0, "503 bulkhead full"}); count[want] != 30 {
			w.Errorf("got %v, want 30 of %v", count, want)
		}
		if want := (lineAt{5 * time.Second, "504 payment failed: total deadline exceeded after 5s"}); count[want] != 20 || len(count) != 2 {
			w.Errorf("got %v, want 20 of %v", count, want)
		}
	})
	inBubble(t, Config{SlowPermits: 1, SlowPolicy: shed.Wait}, func(w *world) {
		var got []lineAt
		for l := range w.sendLines(w.Context(), "route=/slow&count=3") {
			got = append(got, l)
		}
		if want := []lineAt{{2 * time.Second, "200"}, {4 * time.Second, "200"}, {6 * time.Second, "200"}}; !slices.Equal(got, want) {
			w.Errorf("got %v, want %v", got, want)
		}
	})
}

// Who leaves takes along what was sent: no permit, no goroutine, no answer is left.
func TestAClientThatLeavesCancelsWhatItSent(t *testing.T) {
	inBubble(t, Config{SlowPermits: 50}, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "H"})
		ctx, leave := context.WithCancel(w.Context())
		checkouts := w.sendLines(ctx, "route=/checkout&count=50&without=timeout")
		slow := w.sendLines(ctx, "route=/slow&count=50")
		time.Sleep(time.Second)
		if a, b, c := w.snapshot(flaky).Bulkhead.InUse, w.service.shedder.Snapshot().InUse, w.service.senders.Snapshot().InUse; a != 20 || b != 50 || c != 2 {
			w.Errorf("%d checkouts, %d of /slow and %d senders under way", a, b, c)
		}
		left := time.Now()
		leave()
		synctest.Wait()
		if a, b, c := w.snapshot(flaky).Bulkhead.InUse, w.service.shedder.Snapshot().InUse, w.service.senders.Snapshot().InUse; a+b+c != 0 {
			w.Errorf("%d checkouts, %d of /slow and %d senders are left", a, b, c)
		}
		if time.Since(left) != 0 || len(checkouts) != 30 || len(slow) != 0 || w.counted() != "bulkhead:30" {
			w.Errorf("after %v %d and %d lines, counted %s", time.Since(left), len(checkouts), len(slow), w.counted())
		}
		if log := w.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "panic") {
			w.Errorf("logged:\n%s", log)
		}
		w.want(w.sendForm("route=/stock/mug"), "200 200\n")
	})
}

func TestEightMaySendAtOnce(t *testing.T) {
	inBubble(t, Config{SlowPermits: 8}, func(w *world) {
		var under []<-chan lineAt
		for range 8 {
			under = append(under, w.sendLines(w.Context(), "route=/slow"))
		}
		stream := w.openStream()
		stream.take()
		got := w.sendForm("route=/limited")
		w.want(got, "503 busy")
		if got.header.Get("Retry-After") != "1" || w.scrape()[`shed_rejected_total{route="/send"}`] != "1" {
			w.Errorf("%v, %s refused", got.header, w.scrape()[`shed_rejected_total{route="/send"}`])
		}
		if told := only(stream.take(), "decision"); len(told) != 1 || !strings.HasSuffix(told[0], `"by":"senders","decision":"rejected"}`) {
			w.Errorf("told %q", told)
		}
		w.want(w.sendForm("route=/nope"), `400 route: "/nope" is not /checkout, /stock/mug, /charge, /profile/ada, /limited or /slow`)
		for _, lines := range under {
			if l := <-lines; l != (lineAt{2 * time.Second, "200"}) {
				w.Errorf("got %v", l)
			}
		}
		synctest.Wait()
		w.want(w.sendForm("route=/limited"), "200 200\n")
		if got := w.counted(); got != "senders:1 served:9" {
			w.Errorf("counted %s", got)
		}
		w.post("/reset", "")
		if got := w.service.senders.Snapshot().Rejected; got != 0 {
			w.Errorf("%d refused after a reset", got)
		}
	})
}

func TestWithoutIsPassedOn(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.wantLines(w.sendForm("route=/checkout&without=retry,breaker"), "1x 502 payment failed: 503 Service Unavailable")
		if got := w.snapshot(flaky); got.Retry.Calls != 0 || got.Breaker.Failures != 0 || got.Bulkhead.InUse != 0 {
			w.Errorf("%+v", got)
		}
		w.fault(flaky, simulator.Fault{Script: "H"})
		w.wantLines(w.sendForm("route=/checkout&count=21&without=bulkhead,timeout"), "21x 504 payment failed: total deadline exceeded after 5s")
		w.wantLines(w.sendForm("route=/limited&without=retry"), "1x 200") // calls nothing
	})
}

func TestTheKeyIsSentAsBothKeys(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.wantLines(w.sendForm("route=/limited&count=5&key=k1"), "2x 429 rate limit exceeded, 3x 200")
		w.wantLines(w.sendForm("route=/limited&count=5"), "2x 429 rate limit exceeded, 3x 200") // without a key another bucket
		w.want(w.get("/limited", "X-API-Key: k1"), "429 rate limit exceeded")
		w.wantLines(w.sendForm("route=/charge&count=10&key=k1"), "10x 200")
		w.want(w.get(ledger), `200 [{"charge_id":"ch_1","amount":1250}]`)
		w.want(w.post("/charge", mug, "Idempotency-Key: k1"), `200 {"charge_id":"ch_1","amount":1250,"replayed":true}`)
		w.wantLines(w.sendForm("route=/charge&count=10"), "10x 200")
		if got := strings.Count(w.get(ledger).body, "charge_id"); got != 11 {
			w.Errorf("%d charges, want one for the key and ten without", got)
		}
	})
}

// What is under way ends well; what is sent now is told that the server stops.
func TestSendDuringADrain(t *testing.T) {
	inBubble(t, Config{SlowPermits: 10}, func(w *world) {
		under := w.sendLines(w.Context(), "route=/slow&count=10")
		time.Sleep(time.Second)
		w.stop()
		synctest.Wait()
		w.wantLines(w.sendForm("route=/checkout&count=3"), "3x 503 draining")
		n := 0
		for l := range under {
			if n++; l != (lineAt{2 * time.Second, "200"}) {
				w.Errorf("got %v", l)
			}
		}
		if n != 10 {
			w.Errorf("%d lines, want 10", n)
		}
		if took, err := w.drained(w.start); err != nil || took < 2*time.Second || took > 2500*time.Millisecond {
			w.Errorf("Serve = %v after %v, want nil once all are served", err, took)
		}
	})
}

// A client that reads nothing holds its place no longer than an answer may take.
func TestASenderThatNobodyReadsEnds(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		conn := w.dial()
		go fmt.Fprintf(conn, "POST /send HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: 23\r\n\r\nroute=/limited&count=50", form)
		time.Sleep(w.service.longestWork() + 10*time.Second - 1)
		synctest.Wait()
		if got := w.service.senders.Snapshot().InUse; got != 1 {
			w.Errorf("%d senders, want 1", got)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if got := w.service.senders.Snapshot().InUse; got != 0 {
			w.Errorf("%d senders, want none", got)
		}
		rest, _ := io.ReadAll(conn)
		if strings.HasSuffix(string(rest), "0\r\n\r\n") {
			w.Error("the cut looks like an end")
		}
	})
}

func TestADrainWaitsForNoSenderThatNobodyReads(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		conn := w.dial()
		go fmt.Fprintf(conn, "POST /send HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: 22\r\n\r\nroute=/limited&count=9", form)
		time.Sleep(time.Second)
		stopped := time.Now()
		w.stop()
		if took, err := w.drained(stopped); err != nil || took > time.Second {
			w.Errorf("Serve = %v after %v, want nil after a second", err, took)
		}
	})
}

// The handler that New returns may not know where it is served.
func TestSendWithoutAnAddress(t *testing.T) {
	h, err := New(Config{Log: quiet, Controls: ControlsOn})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/send", strings.NewReader("route=/limited"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	if h.ServeHTTP(rec, r); rec.Code != 500 || rec.Body.String() != errNoAddress.Error() {
		t.Errorf("%d %s, want 500 %v", rec.Code, rec.Body, errNoAddress)
	}
}
