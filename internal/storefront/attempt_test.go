package storefront

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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

// Headers alone are no answer.
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
		if want := "msg=attempt dependency=flaky outcome=timeout took=800ms"; !strings.Contains(w.log.String(), want) {
			w.Errorf("the log lacks %q:\n%s", want, w.log.String())
		}
	})
}

func TestUnusableResponsesFailTheCall(t *testing.T) {
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
		{"nothing", status(200), 1, "502 payment failed: the response is empty"},
		{"rubbish", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>oops") }, 1,
			"502 payment failed: the response is not JSON"},
		{"too much", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat(" ", 8<<20)+"{}") }, 1,
			"502 payment failed: the response is longer than 8388608 bytes"},
		{"half a body", func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"call\":")
		}, 4, "502 payment failed: reading the response: unexpected EOF"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) { hijack(w, "SSH-2.0-nope\r\n") }, 4,
			`502 payment failed: net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-nope"`},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			conn, buf, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			buf.Flush()
			conn.Read(make([]byte, 1)) // says nothing more until the caller leaves
		}, 1, "502 payment failed: 101 Switching Protocols"},
		{"a redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[::1/")
			w.WriteHeader(302)
		}, 1, "502 payment failed: 302 Found"},
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

func TestUsableResponsesPass(t *testing.T) {
	padded := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat(" ", n-2)+"{}") }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a newline at the end": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}\n") },
		"another 2xx":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); io.WriteString(w, "{}") },
		"8 MiB and no more":    padded(8 << 20),
		"asked for as JSON": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept") == "application/json" {
				io.WriteString(w, "{}")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				w.serveDependency(answer)
				w.want(w.get("/checkout"), "200 {}")
			})
		})
	}
}

// What is too long to be read is not left open either.
func TestTooLongAnAnswerClosesItsConnection(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		var answering atomic.Int64
		w.serveDependency(func(rw http.ResponseWriter, _ *http.Request) {
			answering.Add(1)
			defer answering.Add(-1)
			chunk := make([]byte, 64<<10)
			for {
				if _, err := rw.Write(chunk); err != nil {
					return
				}
			}
		})
		w.want(w.get("/checkout"), "502 payment failed: the response is longer than 8388608 bytes")
		synctest.Wait()
		if got := answering.Load(); got != 0 {
			w.Errorf("%d answers are still being sent", got)
		}
	})
}

// What is left of a refusal's body is read to reuse the connection, but not
// without bound.
func TestErrorBodiesAreDrainedWithinBounds(t *testing.T) {
	const second = "502 payment failed: 503 Service Unavailable"
	for _, tt := range []struct {
		name        string
		size        int
		connections int64
	}{
		{"short", 60 << 10, 1},
		{"long", 1 << 20, 4},
		{"endless", 1 << 40, 4},
		{"that stops", -1, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
				d := w.serveDependency(func(rw http.ResponseWriter, r *http.Request) {
					rw.WriteHeader(503)
					if tt.size < 0 {
						rw.(http.Flusher).Flush()
						hang(rw, r)
					}
					chunk := make([]byte, 4<<10)
					for sent := 0; sent < tt.size; sent += len(chunk) {
						if _, err := rw.Write(chunk); err != nil {
							return
						}
					}
				})
				w.want(w.get("/checkout"), second)
				if got := d.connections.Load(); got != tt.connections {
					w.Errorf("%d connections for 4 attempts, want %d", got, tt.connections)
				}
				if took := time.Since(w.start); took > 900*time.Millisecond {
					w.Errorf("took %v, want no more than the waits and 50ms each", took)
				}
			})
		})
	}
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
		for i := range 10 { // the context of an attempt must outlive its body
			if got := w.get("/checkout"); got.status != 200 || got.body != big {
				w.Fatalf("call %d: %d with %d bytes, want 200 with %d", i, got.status, len(got.body), len(big))
			}
		}
		if got := d.connections.Load(); got != 1 {
			w.Errorf("%d connections for 20 attempts in turn, want 1", got)
		}
	})
}

// An idle connection is given up well before a server does the same.
func TestIdleConnectionsCloseAfter30s(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		d := w.serveDependency(takes(0))
		for _, tt := range []struct {
			idle time.Duration
			want int64
		}{{0, 1}, {29 * time.Second, 1}, {31 * time.Second, 2}} {
			time.Sleep(tt.idle)
			w.want(w.get("/checkout"), "200 {}")
			if got := d.connections.Load(); got != tt.want {
				w.Errorf("%d connections after %v idle, want %d", got, tt.idle, tt.want)
			}
		}
	})
}

func TestNoMoreConnectionsThanCallsAtOnce(t *testing.T) {
	inBubble(t, Config{FlakyURL: dependencyURL}, func(w *world) {
		w.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 20
		d := w.serveDependency(takes(10 * time.Millisecond))
		var workers sync.WaitGroup
		for range 20 { // as many as there are permits
			workers.Go(func() {
				for range 10 {
					w.want(w.get("/checkout"), "200 {}")
				}
			})
		}
		workers.Wait()
		if got := d.connections.Load(); got > 20 || d.requests.Load() != 200 {
			w.Errorf("%d connections for %d calls, 20 at a time, want at most 20", got, d.requests.Load())
		}
	})
}

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
