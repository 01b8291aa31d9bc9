package storefront

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
	"example.com/storefront/internal/transcript"
)

// A log is one record a line whatever a client sends, or a client could write
// records of its own.
func TestLogsAreOneRecordALine(t *testing.T) {
	for format, whole := range map[string]func(line string) bool{
		"text": regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO|WARN|ERROR) msg=`).MatchString,
		"json": func(line string) bool { return json.Valid([]byte(line)) },
	} {
		var log transcript.Buffer
		opts := &slog.HandlerOptions{Level: slog.LevelDebug}
		handler := slog.Handler(slog.NewTextHandler(&log, opts))
		if format == "json" {
			handler = slog.NewJSONHandler(&log, opts)
		}
		inBubble(t, Config{Log: slog.New(handler)}, func(w *world) {
			const forged = "\ntime=2000-01-01T00:00:00Z level=ERROR msg=forged"
			for _, evil := range []string{forged, "\r" + forged, "\u2028" + forged, "\x00", "\x1b[2J"} {
				encoded := url.QueryEscape(evil)
				for _, path := range []string{"/", "/stock/", "/profile/", "/faults/", "/checkout?without=", "/%2f"} {
					w.raw("GET "+path+encoded, "Host: localhost", "")
				}
				w.raw("PUT /faults/flaky", "Host: localhost\r\nContent-Type: application/x-www-form-urlencoded", "script="+encoded)
				w.raw("PUT /faults/flaky", "Host: localhost\r\nContent-Type: application/x-www-form-urlencoded", encoded+"=1")
				w.raw("POST /charge", "Host: localhost", `{"amount":1,"token":"`+encoded+`"}`)
				for _, header := range []string{"Host", "X-API-Key", "Priority", "Idempotency-Key", "Accept", "Origin", "User-Agent", "Content-Type"} {
					w.raw("GET /limited", "Host: x\r\n"+header+": a"+strings.Trim(evil, "\r\n")+"b", "")
				}
				w.raw("BREW"+strings.Trim(evil, "\r\n")+" /checkout", "Host: localhost", "")
			}
			conn := w.dial()
			go io.WriteString(conn, "rubbish\r\nlevel=ERROR msg=forged\r\n\r\n")
			drop(conn)
			// What a dependency says, and a panic with its stack of many lines.
			w.intercept("/upstream/profiles/ada", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Retry-After", "1\ntime=x")
				rw.WriteHeader(599)
			})
			w.get("/profile/ada")
			w.service.fail(httptest.NewRecorder(), httptest.NewRequest("GET", "/x%0ay", nil), fmt.Errorf("panic: %s\ngoroutine 1", forged))
			synctest.Wait()
		})
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		for _, line := range lines {
			if !whole(line) || strings.ContainsAny(line, "\r\x00\x1b") {
				t.Errorf("%s: a line that is no record: %q", format, line)
			}
		}
		if len(lines) < 50 {
			t.Errorf("%s: %d lines, want many", format, len(lines))
		}
	}
}

// At the level of most services a log says what changed, and nothing of what is
// ordinary.
func TestWhatIsLoggedByDefault(t *testing.T) {
	var log bytes.Buffer
	cfg := Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))}
	inBubble(t, cfg, func(w *world) {
		w.get("/checkout")
		w.get("/nope")
		w.get("/limited", "X-API-Key: \"")
		w.put("/faults/flaky", "script=F&status=500&latency=1ms")
		for range 4 {
			w.get("/checkout")
		}
		w.delete("/faults/flaky")
		time.Sleep(11 * time.Second)
		w.get("/checkout")
		w.fault(flaky, simulator.Fault{Script: "F"})
		for range 3 {
			w.get("/checkout")
		}
		w.delete("/faults")
		w.post("/reset", "")
	})
	const want = `level=INFO msg="fault set" dependency=flaky script=F status=500 latency=1ms retry_after=""
level=WARN msg="breaker transition" dependency=flaky from=closed to=open
level=INFO msg="fault reset" dependency=flaky
level=INFO msg="breaker transition" dependency=flaky from=open to=half_open
level=INFO msg="breaker transition" dependency=flaky from=half_open to=closed
level=WARN msg="breaker transition" dependency=flaky from=closed to=open
level=INFO msg="faults reset"
level=INFO msg="breaker transition" dependency=flaky from=open to=closed
level=INFO msg=reset
level=INFO msg=draining timeout=10s
level=INFO msg=drained
`
	if got := log.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
