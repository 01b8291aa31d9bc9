package storefront

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
	"example.com/storefront/internal/transcript"
)

func TestBulkheadRefusesTheTwentyFirstAtOnce(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.serveDependency(takes(500 * time.Millisecond))
		var first []<-chan answer
		for range 20 {
			first = append(first, w.begin(w.Context(), "/checkout"))
		}
		got := w.get("/checkout")
		w.want(got, "503 bulkhead full")
		if took := time.Since(w.start); took != 0 || got.header.Get("Retry-After") != "1" {
			w.Errorf("refused after %v with Retry-After %q, want at once with 1", took, got.header.Get("Retry-After"))
		}
		w.want(w.get("/healthz"), "200 ok")
		for _, a := range first {
			w.want(<-a, "200 {}")
		}
		w.want(w.get("/checkout"), "200 {}")
	})
}

// net/http watches for a hang-up only once the request's body has been read.
func TestHangUpsAreNoticedBehindABody(t *testing.T) {
	inBubble(t, Config{SlowWork: time.Hour}, func(w *world) {
		ctx, hangUp := context.WithCancel(w.Context())
		answers := make(chan answer, 2)
		for range 2 {
			go func() { answers <- w.sendBody(ctx, "GET", "/slow", strings.NewReader("x")) }()
		}
		time.Sleep(time.Minute)
		if got := w.service.shedder.Snapshot().InUse; got != 2 {
			w.Errorf("%d places in use, want 2", got)
		}
		hangUp()
		<-answers
		<-answers
		synctest.Wait()
		if got := w.service.shedder.Snapshot().InUse; got != 0 {
			w.Errorf("%d places in use after the hang-ups, want 0", got)
		}
	})
}

func TestLargeSlowAndMalformedBodiesAreRefused(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		body := func(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }
		w.want(w.sendBody(w.Context(), "GET", "/limited", body(64<<10)), "200 ok")
		w.want(w.sendBody(w.Context(), "GET", "/limited", body(64<<10+1)), "413 the body is too large: at most 65536 bytes")
		for _, tt := range []struct {
			said, want string
			after      time.Duration
		}{
			{"GET /limited HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n", "400 the body: invalid byte in chunk length", 0},
			{"GET /limited HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "408 the body is too slow", 5 * time.Second},
			// Nobody waits for the rest of what is refused.
			{"GET /limited HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", "413 the body is too large: at most 65536 bytes", 0},
			{"GET /limited HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat("x", 65537),
				"413 the body is too large: at most 65536 bytes", 0},
			{"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "408 the body is too slow", 5 * time.Second},
			{"POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", "408 the body is too slow", 5 * time.Second},
		} {
			conn := w.dial()
			start := time.Now()
			go io.WriteString(conn, tt.said)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				w.Fatalf("%q: %v", tt.said, err)
			}
			text, _ := io.ReadAll(resp.Body)
			w.want(answer{status: resp.StatusCode, body: string(text)}, tt.want)
			if took := time.Since(start); took != tt.after || !resp.Close {
				w.Errorf("%q: answered after %v, close %v, want %v and true", tt.said, took, resp.Close, tt.after)
			}
			go drop(conn)
		}
	})
}

func TestHangUpDuringTheBodyIsA499(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		conn := w.dial()
		io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
		conn.Close()
		synctest.Wait()
		if log := w.log.String(); !strings.Contains(log, "route=/slow code=499") {
			w.Errorf("logged:\n%s", log)
		}
	})
}

// The deadline for the body is not one for the work.
func TestWorkAfterABodyIsNotCutOff(t *testing.T) {
	inBubble(t, Config{SlowWork: time.Minute}, func(w *world) {
		w.want(w.sendBody(w.Context(), "GET", "/slow", strings.NewReader("x")), "200 done")
	})
}

// Whatever the dependency answered, nobody waits for it any more.
func TestHangUpIsA499WhateverTheDependencyAnswers(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Retry.Attempts = 1
	inBubble(t, cfg, func(w *world) {
		w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			rw.WriteHeader(503)
			rw.(http.Flusher).Flush()
			hang(rw, r)
		})
		ctx, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
		defer cancel()
		w.send(ctx, "GET", "/checkout")
		time.Sleep(time.Second)
		if log := w.log.String(); !strings.Contains(log, "route=/checkout code=499") {
			w.Errorf("logged:\n%s", log)
		}
	})
}

// A client that takes its answer a byte at a time holds no permit, and is cut
// off in the end.
func TestSlowReadersHoldNoPermit(t *testing.T) {
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, big) })
		conn := w.dial()
		go io.WriteString(conn, "GET /checkout HTTP/1.1\r\nHost: x\r\n\r\n")
		b := make([]byte, 1)
		for {
			if _, err := conn.Read(b); err != nil {
				break
			}
			if got := w.snapshot(flaky).Bulkhead.InUse; got != 0 {
				w.Fatal("a permit is in use")
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(w.start); took < 17*time.Second || took > 19*time.Second {
			w.Errorf("cut off after %v, want 17s", took)
		}
	})
}

// The server's own deadlines follow the longest work.
func TestLongCheckoutsStillGetTheirAnswer(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Deadline, cfg.Flaky.Timeout = time.Minute, time.Minute
	inBubble(t, cfg, func(w *world) {
		w.serveDependency(takes(50 * time.Second))
		w.want(w.get("/checkout"), "200 {}")
	})
}

func TestHangUpsAreNeutralAndGivePermitsBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		policy dependency.Policy
	}{
		{"during an attempt", hang, dependency.Policy{}},
		{"between attempts", status(503), dependency.Policy{Retry: retry.Config{
			Jitter: func(time.Duration) time.Duration { return 2 * time.Second },
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL, Flaky: tt.policy}, func(w *world) {
				d := w.serveDependency(tt.answer)
				for round := range 3 {
					ctx, hangUp := context.WithCancel(w.Context())
					var callers []<-chan answer
					for range 20 {
						callers = append(callers, w.begin(ctx, "/checkout"))
					}
					time.Sleep(100 * time.Millisecond)
					hangUp()
					for _, c := range callers {
						<-c
					}
					synctest.Wait() // no time passes
					got := w.snapshot(flaky)
					if got.Bulkhead.InUse != 0 || got.Breaker.State != breaker.Closed || got.Breaker.Failures != 0 {
						w.Fatalf("round %d: %+v, want no permit in use and no failure", round, got)
					}
				}
				before := d.requests.Load()
				time.Sleep(time.Minute)
				if got := d.requests.Load(); got != before {
					w.Errorf("%d attempts after the hang-ups", got-before)
				}
				log := w.log.String()
				if got := strings.Count(log, "route=/checkout code=499"); got != 60 || strings.Contains(log, "level=ERROR") {
					w.Errorf("%d of 60 logged as 499, or errors:\n%.2000s", got, log)
				}
			})
		})
	}
}

// The panic is a log handler's, in the innermost layer.
func TestPanicGivesItsPermitBack(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Bulkhead.Permits = 1
	cfg.Flaky.Breaker.Failures = 100
	var log transcript.Buffer
	cfg.Log = slog.New(panicking{slog.NewTextHandler(&log, nil)})
	inBubble(t, cfg, func(w *world) {
		for range 10 {
			w.want(w.get("/checkout"), "500 internal error")
		}
		got := w.snapshot(flaky)
		if got.Bulkhead.InUse != 0 || got.Breaker.Failures != 10 {
			w.Errorf("%+v, want no permit in use and 10 failures", got)
		}
		w.want(w.get("/slow"), "200 done")
		if got := strings.Count(log.String(), `err="panic: boom`); got != 10 || strings.Count(log.String(), "route=/checkout code=500") != 10 ||
			strings.Count(log.String(), "\n") != 10+10+10+1 { // panics, /checkout, /flaky, /slow
			w.Errorf("%d panics in the log, want 10, one a line:\n%.2000s", got, log.String())
		}
	})
}

type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == "attempt":
		panic("boom")
	case r.Level < slog.LevelError && r.Message != "request":
		return nil
	}
	return p.Handler.Handle(ctx, r)
}

func TestPanicAfterTheAnswerBeganCutsItOff(t *testing.T) {
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	h := chi.NewRouter()
	h.Use(s.observeRequests)
	h.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"half":`)
		panic("boom")
	})
	rec := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler || rec.Body.String() != `{"half":` {
			t.Errorf("recovered %v after %q, want an abort and nothing added", p, rec.Body)
		}
	}()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
}

func TestHandlerWithoutAServerSaysWhatIsMissing(t *testing.T) {
	h, err := New(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := httptest.NewRequest("GET", "/limited", nil)
		r.Body = body
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != 200 {
			t.Errorf("/limited with body %v: %d, want 200", body, rec.Code)
		}
	}
	for _, path := range []string{"/checkout", "/stock/mug", "/profile/ada", "/charge"} {
		method := "GET"
		if path == "/charge" {
			method = "POST"
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(mug)))
		if rec.Code != 500 || rec.Body.String() != errNoAddress.Error() {
			t.Errorf("%s: %d %q, want 500 with the reason", path, rec.Code, rec.Body)
		}
	}
}
