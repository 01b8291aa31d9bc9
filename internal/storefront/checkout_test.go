package storefront

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
)

func TestCheckoutRetriesUntilFlakySucceeds(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.want(w.get("/checkout"), `200 {"call":3}`)
		w.want(w.get("/checkout"), `200 {"call":6}`)
		w.want(w.get("/flaky"), `503 `)
		w.want(w.get("/flaky"), `503 `)
		w.want(w.get("/flaky"), `200 {"call":9}`)
	})
}

func TestBreakerOpensStaysOpenProbesAndCloses(t *testing.T) {
	const s = time.Second
	healed := false
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			if !healed {
				rw.WriteHeader(500) // not one that is retried
				return
			}
			io.WriteString(rw, `{"paid":true}`)
		})
		w.timeline(
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "502 payment failed: 500 Internal Server Error"},
			step{1 * s, "/checkout", "503 circuit open"},
			step{11 * s, "/checkout", "503 circuit open"}, // exactly 10 s
		)
		if got := d.requests.Load(); got != 3 {
			w.Errorf("%d requests reached the dependency, want 3", got)
		}
		w.timeline(
			step{11*s + 1, "/checkout", "502 payment failed: 500 Internal Server Error"}, // the probe
			step{11*s + 1, "/checkout", "503 circuit open"},                              // case 5
			step{21*s + 1, "/checkout", "503 circuit open"},
		)
		healed = true
		w.timeline(
			step{21*s + 2, "/checkout", `200 {"paid":true}`},
			step{21*s + 2, "/checkout", `200 {"paid":true}`},
		)
		var transitions []string
		for line := range strings.Lines(w.log.String()) {
			if _, change, ok := strings.Cut(line, `msg="breaker transition" `); ok {
				_, level, _ := strings.Cut(line, "level=")
				transitions = append(transitions, level[:4]+" "+strings.TrimSpace(change))
			}
		}
		want := []string{
			"WARN dependency=flaky from=closed to=open",
			"INFO dependency=flaky from=open to=half_open",
			"WARN dependency=flaky from=half_open to=open",
			"INFO dependency=flaky from=open to=half_open",
			"INFO dependency=flaky from=half_open to=closed",
		}
		if fmt.Sprint(transitions) != fmt.Sprint(want) {
			w.Errorf("logged %q, want %q", transitions, want)
		}
	})
}

func TestRetryAfterOfAnOpenBreaker(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.serveDependency(status(500))
		for range 3 {
			w.get("/checkout")
		}
		for _, tt := range []struct {
			at   time.Duration
			want string
		}{
			{0, "5"}, // never more
			{5 * time.Second, "5"},
			{5*time.Second + 1, "5"}, // rounded up
			{6 * time.Second, "4"},
			{9*time.Second + 500*time.Millisecond, "1"},
			{10 * time.Second, "1"},
		} {
			time.Sleep(time.Until(w.start.Add(tt.at)))
			got := w.get("/checkout")
			w.want(got, "503 circuit open")
			if got := got.header.Get("Retry-After"); got != tt.want {
				w.Errorf("at %v: Retry-After %q, want %q", tt.at, got, tt.want)
			}
		}
	})
}

// Case 4.
func TestCrowdAfterTheCooldownGetsOneProbe(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 100
		slow := false
		d := w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			if !slow {
				rw.WriteHeader(500)
				return
			}
			takes(500*time.Millisecond)(rw, r)
		})
		for range 3 {
			w.get("/checkout")
		}
		time.Sleep(10*time.Second + 1)
		slow = true
		start := time.Now()
		got := map[string]int{}
		var mu sync.Mutex
		var crowd sync.WaitGroup
		for range 50 {
			crowd.Go(func() {
				a := w.get("/checkout")
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprint(a, " ", time.Since(start), " ", a.header.Get("Retry-After"))]++
			})
		}
		crowd.Wait()
		want := map[string]int{"200 {} 500ms ": 1, "503 circuit open 0s 1": 49}
		if fmt.Sprint(got) != fmt.Sprint(want) || d.requests.Load() != 4 {
			w.Errorf("%v with %d requests, want %v with 4", got, d.requests.Load(), want)
		}
	})
}

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
		for _, a := range first {
			w.want(<-a, "200 {}")
		}
		w.want(w.get("/checkout"), "200 {}")
	})
}

func TestAttemptTimeout(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		want  string
		calls int64
	}{
		{800*time.Millisecond - 1, "200 {}", 1},
		{800*time.Millisecond + 1, "502 payment failed: attempt timed out after 800ms", 4},
	} {
		t.Run(tt.takes.String(), func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				d := w.serveDependency(takes(tt.takes))
				w.want(w.get("/checkout"), tt.want)
				if got := d.requests.Load(); got != tt.calls {
					w.Errorf("%d attempts, want %d", got, tt.calls)
				}
				// 4 attempts, and waits of at most 100, 200 and 400 ms.
				least := min(tt.takes, 800*time.Millisecond) * time.Duration(tt.calls)
				most := least + time.Duration(tt.calls/4)*700*time.Millisecond
				if took := time.Since(w.start); took < least || took > most {
					w.Errorf("took %v, want %v to %v", took, least, most)
				}
			})
		})
	}
}

// The timeout covers the body: headers alone are no answer.
func TestAttemptTimeoutCoversTheBody(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Retry.Attempts = 1
	inBubble(t, cfg, func(w *world) {
		w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			io.WriteString(rw, `{"half":`)
			rw.(http.Flusher).Flush()
			hang(rw, r)
		})
		w.want(w.get("/checkout"), "502 payment failed: attempt timed out after 800ms")
		if took := time.Since(w.start); took != 800*time.Millisecond {
			w.Errorf("took %v, want 800ms", took)
		}
	})
}

// Cases 11 and 12.
func TestTotalDeadlineEndsTheCallAndNamesTheLastRealError(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Deadline = time.Second
	inBubble(t, cfg, func(w *world) {
		d := w.serveDependency(hang)
		w.want(w.get("/checkout"), "504 payment failed: total deadline exceeded after 1s; last error: attempt timed out after 800ms")
		if took := time.Since(w.start); took != time.Second {
			w.Errorf("took %v, want 1s", took)
		}
		time.Sleep(time.Minute)
		if got := d.requests.Load(); got != 2 {
			w.Errorf("%d attempts, want 2 and none later", got)
		}
	})
}

// Case 14.
func TestRetryAfterOfTheDependency(t *testing.T) {
	for _, tt := range []struct {
		value       string
		least, most time.Duration
		want        string
	}{
		{"2", 2 * time.Second, 2100 * time.Millisecond, "200 {}"}, // added to the jitter
		{"4", 4 * time.Second, 4100 * time.Millisecond, "200 {}"},
		{"5", 0, 0, "502 payment failed: 503 Service Unavailable"}, // would reach the deadline
		{"3600", 0, 0, "502 payment failed: 503 Service Unavailable"},
		{"9223372037", 0, 100 * time.Millisecond, "200 {}"},
		{"-3", 0, 100 * time.Millisecond, "200 {}"},
		{"1.5", 0, 100 * time.Millisecond, "200 {}"},
		{"Sat, 01 Jan 2000 00:00:03 GMT", 3 * time.Second, 3100 * time.Millisecond, "200 {}"}, // the bubble begins with 2000
	} {
		t.Run(tt.value, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				calls := 0
				w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
					if calls++; calls == 1 {
						rw.Header().Set("Retry-After", tt.value)
						rw.WriteHeader(503)
						return
					}
					io.WriteString(rw, "{}")
				})
				w.want(w.get("/checkout"), tt.want)
				if took := time.Since(w.start); took < tt.least || took > tt.most {
					w.Errorf("took %v, want %v to %v", took, tt.least, tt.most)
				}
			})
		})
	}
}

func TestWhichAnswersAreRetriedAndWhichOpenTheBreaker(t *testing.T) {
	for _, tt := range []struct {
		status   int
		attempts int64 // of one call
		failure  bool
	}{
		{302, 1, true}, // not followed, no use
		{400, 1, false},
		{404, 1, false},
		{429, 4, false},
		{500, 1, true},
		{501, 1, true},
		{502, 4, true},
		{503, 4, true},
		{504, 4, true},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
					rw.Header().Set("Location", self+"/flaky")
					rw.WriteHeader(tt.status)
				})
				w.want(w.get("/checkout"), fmt.Sprintf("502 payment failed: %d %s", tt.status, http.StatusText(tt.status)))
				if got := d.requests.Load(); got != tt.attempts {
					w.Errorf("%d attempts, want %d", got, tt.attempts)
				}
				w.get("/checkout")
				w.get("/checkout")
				want := breaker.Closed
				if tt.failure {
					want = breaker.Open
				}
				if got := w.service.flaky.Snapshot().Breaker.State; got != want {
					w.Errorf("%v after three, want %v", got, want)
				}
			})
		})
	}
}

func TestUnusableAnswers(t *testing.T) {
	hijack := func(w http.ResponseWriter, bytes string) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		buf.WriteString(bytes)
		buf.Flush()
		conn.Close()
	}
	for _, tt := range []struct {
		name     string
		answer   http.HandlerFunc
		attempts int64
		want     string
	}{
		{"nothing", status(200), 1, "502 payment failed: the answer is empty"},
		{"rubbish", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>oops") }, 1,
			"502 payment failed: the answer is not JSON"},
		{"too much", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat(" ", 8<<20)+"{}") }, 1,
			"502 payment failed: the answer is longer than 8388608 bytes"},
		{"half a body", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"call\":")
		}, 4, "502 payment failed: reading the answer: unexpected EOF"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "SSH-2.0-nope\r\n") }, 4,
			`502 payment failed: net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-nope"`},
		{"a closed connection", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "") }, 4,
			"502 payment failed: EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				d := w.serveDependency(tt.answer)
				w.want(w.get("/checkout"), tt.want)
				if got := d.requests.Load(); got != tt.attempts {
					w.Errorf("%d attempts, want %d", got, tt.attempts)
				}
				w.get("/checkout")
				w.get("/checkout")
				w.want(w.get("/checkout"), "503 circuit open")
			})
		})
	}
}

func TestDeadPortOpensTheBreaker(t *testing.T) {
	inBubble(t, Config{FlakyURL: "http://127.0.0.1:1"}, func(w *world) {
		for range 3 {
			w.want(w.get("/checkout"), "502 payment failed: dial tcp 127.0.0.1:1: connect: connection refused")
		}
		before := time.Now()
		w.want(w.get("/checkout"), "503 circuit open") // case 18
		if waited := time.Since(before); waited != 0 {
			w.Errorf("refused after %v, want at once", waited)
		}
	})
}

func TestAnswersAreWholeAndConnectionsReused(t *testing.T) {
	big := `{"data":"` + strings.Repeat("x", 5<<20) + `"}`
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		calls := 0
		d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			if calls++; calls%2 == 1 { // a refusal with a body to drain
				rw.WriteHeader(503)
				io.WriteString(rw, strings.Repeat("sorry ", 1000))
				return
			}
			io.WriteString(rw, big)
		})
		for i := range 4 {
			if got := w.get("/checkout"); got.status != 200 || got.body != big { // case 16
				w.Fatalf("call %d: %d with %d bytes, want 200 with %d", i, got.status, len(got.body), len(big))
			}
		}
		if got := d.connections.Load(); got != 1 { // case 15
			w.Errorf("%d connections for 8 attempts in turn, want 1", got)
		}
	})
}

// Case 34.
func TestNoMoreConnectionsThanCallsAtOnce(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 10
		d := w.serveDependency(takes(10 * time.Millisecond))
		var workers sync.WaitGroup
		for range 10 {
			workers.Go(func() {
				for range 20 {
					w.want(w.get("/checkout"), "200 {}")
				}
			})
		}
		workers.Wait()
		if got := d.connections.Load(); got > 10 || d.requests.Load() != 200 {
			w.Errorf("%d connections for %d calls, 10 at a time, want at most 10", got, d.requests.Load())
		}
	})
}

// Case 40.
func TestOneAttemptIsOneRequestOnTheWire(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Retry.Attempts = 1
	inBubble(t, cfg, func(w *world) {
		d := w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
				w.Errorf("a GET with a body: length %d, %q", r.ContentLength, r.TransferEncoding)
			}
			if strings.HasSuffix(r.URL.RawQuery, "break") {
				conn, _, _ := rw.(http.Hijacker).Hijack()
				conn.Close()
				return
			}
			io.WriteString(rw, "{}")
		})
		w.want(w.get("/checkout"), "200 {}")
		w.service.cfg.FlakyURL = dependencyURL + "?break"
		w.want(w.get("/checkout"), "502 payment failed: EOF")
		if got := d.requests.Load(); got != 2 || d.connections.Load() != 1 {
			w.Errorf("%d requests on %d connections, want 2 on 1", got, d.connections.Load())
		}
	})
}

// Cases 1, 9 and 33.
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
					got := w.service.flaky.Snapshot()
					if got.Bulkhead.InUse != 0 || got.Breaker.State != breaker.Closed || got.Breaker.ConsecutiveFailures != 0 {
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

// Case 41: 20 calls are in their first wait when one of them, by a status that is
// not retried, opens the breaker.
func TestNoAttemptStartsOnceTheBreakerHasOpened(t *testing.T) {
	cfg := Config{FlakyURL: dependencyURL}
	cfg.Flaky.Breaker.Failures = 1
	cfg.Flaky.Retry.Jitter = func(time.Duration) time.Duration { return time.Second }
	inBubble(t, cfg, func(w *world) {
		calls := 0
		d := w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			if calls++; calls == 11 {
				rw.WriteHeader(500)
				return
			}
			rw.WriteHeader(503)
		})
		var callers []<-chan answer
		for range 10 {
			callers = append(callers, w.begin(w.Context(), "/checkout"))
		}
		w.want(w.get("/checkout"), "502 payment failed: 500 Internal Server Error")
		for _, c := range callers {
			w.want(<-c, "502 payment failed: 503 Service Unavailable")
		}
		if got := d.requests.Load(); got != 11 {
			w.Errorf("%d attempts, want 11: none after the breaker opened", got)
		}
	})
}

// Case 25. The panic is a log handler's, in the innermost layer.
func TestPanicGivesItsPermitBack(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Bulkhead.Permits = 1
	cfg.Flaky.Breaker.Failures = 100
	var log syncBuffer
	cfg.Log = slog.New(panicking{slog.NewTextHandler(&log, nil)})
	inBubble(t, cfg, func(w *world) {
		for range 10 {
			w.want(w.get("/checkout"), "500 internal error")
		}
		got := w.service.flaky.Snapshot()
		if got.Bulkhead.InUse != 0 || got.Breaker.ConsecutiveFailures != 10 {
			w.Errorf("%+v, want no permit in use and 10 failures", got)
		}
		w.want(w.get("/slow"), "200 done")
		if got := strings.Count(log.String(), `err="panic: boom`); got != 10 || strings.Count(log.String(), "\n") != 10 {
			w.Errorf("%d panics in the log, want 10, one a line:\n%s", got, log.String())
		}
	})
}

type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == "attempt":
		panic("boom")
	case r.Level < slog.LevelError:
		return nil
	}
	return p.Handler.Handle(ctx, r)
}

func TestPanicAfterTheAnswerBeganCutsItOff(t *testing.T) {
	s, err := newService(Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	h := s.logRequests(s.recoverPanics(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"half":`)
		panic("boom")
	})))
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
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/checkout", nil))
	if rec.Code != 500 || rec.Body.String() != errNoAddress.Error() {
		t.Errorf("%d %q, want 500 with the reason", rec.Code, rec.Body)
	}
}
