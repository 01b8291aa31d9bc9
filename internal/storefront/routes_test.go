package storefront

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"example.com/storefront/internal/simulator"
)

// pinned has every route, its methods as Allow lists them, and a path and a body with
// which it answers 200.
var pinned = []struct{ route, allow, path, body string }{
	{"/checkout", "GET, HEAD", "/checkout", ""},
	{"/flaky", "GET, HEAD", "/flaky", ""},
	{"/limited", "GET, HEAD", "/limited", ""},
	{"/slow", "GET, HEAD", "/slow", ""},
	{"/stock/{sku}", "GET, HEAD", "/stock/mug", ""},
	{"/charge", "POST", "/charge", mug},
	{"/profile/{id}", "GET, HEAD", "/profile/ada", ""},
	{"/upstream/inventory/stock/{sku}", "GET, HEAD", "/upstream/inventory/stock/mug", ""},
	{"/upstream/payments/charge", "POST", "/upstream/payments/charge", mug},
	{"/upstream/payments/charges", "GET, HEAD", "/upstream/payments/charges", ""},
	{"/upstream/profiles/{id}", "GET, HEAD", "/upstream/profiles/ada", ""},
	{"/healthz", "GET, HEAD", "/healthz", ""},
	{"/readyz", "GET, HEAD", "/readyz", ""},
	{"/status", "GET, HEAD", "/status", ""},
	{"/metrics", "GET, HEAD", "/metrics", ""},
	{"/events", "GET, HEAD", "/events", ""},
	{"/faults", "GET, HEAD, DELETE", "/faults", ""},
	{"/faults/{dependency}", "GET, HEAD, PUT, DELETE", "/faults/flaky", ""},
	{"/reset", "POST", "/reset", ""},
	{"/send", "POST", "/send", "route=/limited"},
	{"/", "GET, HEAD", "/", ""},
	{"/console/{file}", "GET, HEAD", "/console/index.html", ""},
}

func TestEveryRouteIsPinned(t *testing.T) {
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, p := range pinned {
		rows[p.route] = true
	}
	err = chi.Walk(s.Handler.(chi.Routes), func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !rows[route] {
			t.Errorf("%s has no row", route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOtherMethodsGet405AndUnknownPaths404(t *testing.T) {
	noRoute := "404 " + errNotFound.Error()
	inBubble(t, Config{}, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "S"})
		for _, p := range pinned {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
				if method == "GET" && p.route == "/events" {
					continue // never ends; events_test.go has it
				}
				got := w.sendBody(w.Context(), method, p.path, strings.NewReader(p.body), form)
				if slices.Contains(strings.Split(p.allow, ", "), method) {
					if got.status != 200 || (got.body == "") != (method == "HEAD") || got.header.Get("Content-Type") == "" {
						w.Errorf("%s %s: %v %v, want 200", method, p.path, got, got.header)
					}
					continue
				}
				if got.status != 405 || got.body != "method not allowed; try "+strings.NewReplacer(", HEAD", "", ", ", " or ").Replace(p.allow) && method != "HEAD" {
					w.Errorf("%s %s: %v, want 405", method, p.path, got)
				}
				if cache := got.header.Get("Cache-Control"); cache != "no-store" {
					w.Errorf("%s %s: Cache-Control %q", method, p.path, cache)
				}
				if allow := got.header.Get("Allow"); allow != p.allow {
					w.Errorf("%s %s: Allow %q, want %q", method, p.path, allow, p.allow)
				}
			}
		}
		w.want(w.send(w.Context(), "POST", "/%73low"), "405 method not allowed; try GET")
		w.want(w.get("/%73low"), "200 done")
		encoded := w.send(w.Context(), "POST", "/stock/a%2fb")
		w.want(encoded, "405 method not allowed; try GET")
		if allow := encoded.header.Get("Allow"); allow != "GET, HEAD" {
			w.Errorf("an encoded slash: Allow %q", allow)
		}
		conn := w.dial()
		go io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 404 {
			w.Errorf("OPTIONS *: %v, %v, want 404", resp, err)
		}
		for _, path := range []string{"/nope", "/console", "/console/", "/console/a/b", "/checkout/", "/Checkout", "//slow", "/flaky/%2f", "/stock", "/stock/", "/stock/a/b", "/charge/", "/profile/", "/upstream", "/upstream/payments", "/faults/", "/faults/flaky/x", "/status/", "/metrics/x"} {
			for _, method := range []string{"GET", "POST", "BREW"} {
				got := w.send(w.Context(), method, path)
				w.want(got, noRoute)
				if allow := got.header.Get("Allow"); allow != "" {
					w.Errorf("%s %s: Allow %q for no route", method, path, allow)
				}
			}
		}
	})
}

func TestContentTypes(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for path, want := range map[string]string{
			"/checkout": "application/json",
			"/limited":  "text/plain; charset=utf-8",
			"/slow":     "text/plain; charset=utf-8",
			"/nope":     "text/plain; charset=utf-8",
		} {
			got := w.get(path)
			if got := got.header.Get("Content-Type"); got != want {
				w.Errorf("%s: Content-Type %q, want %q", path, got, want)
			}
			if got := got.header.Get("Cache-Control"); path != "/nope" && got != "no-store" {
				w.Errorf("%s: Cache-Control %q, want no-store", path, got)
			}
		}
	})
}

func TestErrorsAreProblemsForThoseWhoAskForJSON(t *testing.T) {
	inBubble(t, Config{LimitBurst: 1, FlakyURL: "http://127.0.0.1:1"}, func(w *world) {
		w.get("/limited")
		w.begin(w.Context(), "/slow")
		w.begin(w.Context(), "/slow")
		for _, tt := range []struct{ path, want string }{
			{"/limited", `429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",` +
				`"title":"Too Many Requests","status":429,"detail":"rate limit exceeded","retry_after":1,` +
				`"hint":"wait for the next token"}`},
			{"/checkout", `502 {"type":"about:blank","title":"Bad Gateway","status":502,` +
				`"detail":"payment failed: dial tcp 127.0.0.1:1: connect: connection refused"}`},
			{"/slow", `503 {"type":"about:blank","title":"Service Unavailable","status":503,"detail":"busy",` +
				`"retry_after":1,"hint":"wait until a request under way is done"}`},
			{"/nope", `404 {"type":"about:blank","title":"Not Found","status":404,` +
				`"detail":"no such route; try /checkout, /limited, /slow, /stock/mug, /profile/ada, POST /charge, /faults or /status"}`},
		} {
			got := w.get(tt.path, "Accept: application/json")
			w.want(got, tt.want)
			if got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Vary") != "Accept" {
				w.Errorf("%s: %v", tt.path, got.header)
			}
			if !json.Valid([]byte(got.body)) {
				w.Errorf("%s: not JSON", tt.path)
			}
		}
		w.want(w.get("/flaky", "Accept: application/json"), "503 ") // simulators answer as themselves
	})
}

func TestWhoAsksForJSON(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                   false,
		"*/*":                                false,
		"application/*":                      false,
		"text/plain":                         false,
		"application/json":                   true,
		"application/problem+json":           true,
		"Application/JSON":                   true,
		"text/plain, application/json;q=0.5": true,
		"application/json, text/plain, */*":  true,
		"application/json;q=0":               false,
		"application/json;q=0.000":           false,
		"application/json;q=x":               false,
		"application/jsonx":                  false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false,
		",;,": false,
	} {
		r := &http.Request{Header: http.Header{"Accept": {accept}}}
		if got := wantsProblem(r); got != want {
			t.Errorf("Accept %q: %v, want %v", accept, got, want)
		}
	}
}

// Every error of the table, bare and wrapped, gets the table's status and,
// where something is refused for now, a Retry-After.
func TestEveryErrorGetsItsStatus(t *testing.T) {
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[error]bool{}
	for _, row := range answers {
		if seen[row.err] {
			t.Errorf("%v stands twice", row.err)
		}
		seen[row.err] = true
		if row.err == context.Canceled {
			continue // not answered
		}
		for _, err := range []error{row.err, fmt.Errorf("wrapped: %w", row.err)} {
			rec := httptest.NewRecorder()
			s.fail(rec, httptest.NewRequest("GET", "/", nil), err)
			if rec.Code != row.status || rec.Body.String() != err.Error() {
				t.Errorf("%v: %d %q, want %d", err, rec.Code, rec.Body, row.status)
			}
			refusal := row.status == 429 || row.status == 503
			if got := rec.Header().Get("Retry-After"); (got == "1") != refusal {
				t.Errorf("%v: Retry-After %q", err, got)
			}
			rec = httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", "application/problem+json")
			s.fail(rec, r, err)
			var got problem
			if json.Unmarshal(rec.Body.Bytes(), &got) != nil || rec.Code != row.status || got.Status != row.status || got.Detail != err.Error() ||
				got.Title != http.StatusText(row.status) || got.Hint != row.hint || (got.RetryAfter == 1) != refusal {
				t.Errorf("%v as a problem: %d %s", err, rec.Code, rec.Body)
			}
		}
	}
	rec := httptest.NewRecorder()
	s.fail(rec, httptest.NewRequest("GET", "/", nil), errors.New("a secret"))
	if rec.Code != 500 || rec.Body.String() != "internal error" {
		t.Errorf("unknown error: %d %q", rec.Code, rec.Body)
	}
}

func TestHungUpCallersGetNoAnswer(t *testing.T) {
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || rec.Body.Len() > 0 {
			t.Errorf("recovered %v after %q, want an abort", p, rec.Body)
		}
	}()
	s.fail(rec, httptest.NewRequest("GET", "/", nil), fmt.Errorf("gone: %w", context.Canceled))
}

// The README's table of dependencies has the numbers of the policies.
func TestReadmeHasThePolicies(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range policies {
		opens := fmt.Sprintf("%d failures in a row", p.Breaker.Failures)
		if p.Breaker.FailureRatio == 0.5 {
			opens = fmt.Sprintf("half of %d calls or more", p.Breaker.MinCalls)
		}
		if p.Breaker.Window > 0 {
			opens += fmt.Sprintf(" within %v", p.Breaker.Window)
		}
		cooldown := p.Breaker.Cooldown.String()
		if p.Breaker.Jitter > 0 {
			cooldown += fmt.Sprintf(" ±%v%%", 100*p.Breaker.Jitter)
		}
		attempts := fmt.Sprint(p.Retry.Attempts)
		if name == payments {
			attempts += " with a key, else 1"
		}
		route := map[string]string{flaky: "/checkout", inventory: "/stock/{sku}", payments: "/charge", profiles: "/profile/{id}"}[name]
		row := fmt.Sprintf("| `%s` | `%s` | %d | %s | %s | %d | %v | %s | %v |", name, route, p.Bulkhead.Permits, opens, cooldown,
			p.Breaker.Probes, p.Timeout, attempts, p.Deadline)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README lacks %s", row)
		}
	}
}

// The README lists the routes that there are.
func TestReadmeListsEveryRoute(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\|").FindAllSubmatch(readme, -1) {
		listed[string(m[1])] = true
	}
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	err = chi.Walk(s.Handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		line := method + " " + route
		if !listed[line] {
			t.Errorf("README does not list %s", line)
		}
		delete(listed, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range listed {
		t.Errorf("README lists %s, which there is not", line)
	}
	if strings.Count(string(readme), "| `GET /checkout` |") != 1 {
		t.Error("README lists no routes as this test reads them")
	}
}
