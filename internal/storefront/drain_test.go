package storefront

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/retry"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// drained is what Serve returned, and how long that took.
func (w *world) drained(since time.Time) (time.Duration, error) {
	err := <-w.served
	w.served <- err
	return time.Since(since), err
}

func TestDrainFinishesAcceptedWorkAndRefusesNew(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		accepted := w.begin(w.Context(), "/slow")
		time.Sleep(time.Second)
		w.stop()
		synctest.Wait()

		w.want(w.get("/readyz"), "503 draining")
		w.want(w.get("/healthz"), "200 ok")
		for _, path := range []string{"/checkout", "/limited", "/slow", "/stock/mug", "/profile/ada"} {
			got := w.get(path)
			w.want(got, "503 draining")
			if !got.closes || got.header.Get("Retry-After") != "1" {
				w.Errorf("%s: %v, want Connection: close and Retry-After: 1", path, got.header)
			}
			if got := got.header.Get("Cache-Control"); got != "no-store" {
				w.Errorf("%s: Cache-Control %q", path, got)
			}
		}
		w.want(<-accepted, "200 done")
		if _, err := w.drained(w.start); err != nil {
			w.Errorf("Serve = %v", err)
		}
		w.want(w.get("/healthz"), `0 Get "http://127.0.0.1:3000/healthz": dial tcp 127.0.0.1:3000: connect: connection refused`)
	})
}

// Waiting in a queue is accepted work too.
func TestDrainServesWhoWaits(t *testing.T) {
	cfg := Config{SlowPolicy: shed.Wait, SlowPermits: 1}
	cfg.Flaky.Bulkhead = bulkhead.Config{Permits: 1, MaxWait: time.Minute}
	inBubble(t, cfg, func(w *world) {
		w.fault(flaky, simulator.Fault{Script: "S", Latency: 700 * time.Millisecond})
		var accepted []<-chan answer
		for _, path := range []string{"/slow", "/slow", "/checkout", "/checkout"} {
			accepted = append(accepted, w.begin(w.Context(), path))
		}
		w.stop()
		for i, want := range []string{"200 done", "200 done", `200 {"call":1}`, `200 {"call":2}`} {
			w.want(<-accepted[i], want)
		}
		if took, err := w.drained(w.start); err != nil || took < 4*time.Second {
			w.Errorf("Serve = %v after %v, want nil once all are served", err, took)
		}
	})
}

// The listener must still be there for the service's own calls.
func TestDrainWaitsForACheckoutBetweenAttempts(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Retry = retry.Config{Jitter: func(time.Duration) time.Duration { return time.Second }}
	inBubble(t, cfg, func(w *world) {
		checkout := w.begin(w.Context(), "/checkout")
		w.stop()
		w.want(<-checkout, `200 {"call":3}`)
		if took := time.Since(w.start); took != 2*time.Second {
			w.Errorf("took %v, want 2s", took)
		}
		if _, err := w.drained(w.start); err != nil {
			w.Errorf("Serve = %v", err)
		}
	})
}

func TestDrainCutsOffWhatIsStuck(t *testing.T) {
	inBubble(t, Config{SlowWork: time.Hour}, func(w *world) {
		w.stuck = true
		stuck := w.begin(w.Context(), "/slow")
		w.stop()
		if got := <-stuck; got.status != 0 {
			w.Errorf("got %v, want no answer", got)
		}
		took, err := w.drained(w.start)
		if !errors.Is(err, ErrDrainTimeout) || took < 10*time.Second || took > 11*time.Second {
			w.Errorf("Serve = %v after %v, want %v after 10s", err, took, ErrDrainTimeout)
		}
	})
}

// Clients that say nothing, or stop in the middle, do not hold up the end.
func TestDrainDoesNotWaitForSilence(t *testing.T) {
	for name, said := range map[string]string{
		"a silent connection": "",
		"a half-sent request": "GET /slow HTTP/1.1\r\nHost: x",
		"an idle connection":  "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				accepted := w.begin(w.Context(), "/slow")
				conn := w.dial()
				go conn.Write([]byte(said))
				go drop(conn)
				synctest.Wait()
				stopped := time.Now()
				w.stop()
				w.want(<-accepted, "200 done")
				took, err := w.drained(stopped)
				if err != nil || took > 2500*time.Millisecond {
					w.Errorf("Serve = %v after %v, want nil soon after the last answer", err, took)
				}
			})
		})
	}
}

func TestDrainWaitsASecondForAnswersThatNobodyReads(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		conn := w.dial()
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		stopped := time.Now()
		w.stop()
		if _, err := w.drained(stopped); err != nil {
			w.Errorf("Serve = %v", err)
		}
		if took := time.Since(stopped); took != time.Second {
			w.Errorf("took %v, want 1s", took)
		}
	})
}

func TestDrainClosesSilentConnectionsAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		conn := w.dial()
		time.Sleep(2 * time.Second)
		accepted := w.begin(w.Context(), "/slow")
		w.stop()
		stopped := time.Now()
		drop(conn) // returns when the server has closed
		if took := time.Since(stopped); took != 0 {
			w.Errorf("closed after %v, want at once", took)
		}
		w.want(<-accepted, "200 done")
	})
}

// A young connection may be one of our own on its way to a simulator.
func TestDrainLeavesYoungConnectionsUntilTheWorkIsDone(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		accepted := w.begin(w.Context(), "/slow")
		young := w.dial()
		synctest.Wait() // for the server to see it
		w.stop()
		time.Sleep(time.Second)
		later := w.dial()
		go io.WriteString(young, "GET /flaky HTTP/1.1\r\nHost: x\r\n\r\n")
		answer := make([]byte, 12)
		if _, err := io.ReadFull(young, answer); err != nil || string(answer) != "HTTP/1.1 503" {
			w.Errorf("got %q, %v, want flaky's first answer", answer, err)
		}
		go drop(young)
		w.want(<-accepted, "200 done")
		drop(later)
		if _, err := w.drained(w.start); err != nil {
			w.Errorf("Serve = %v", err)
		}
		if took := time.Since(w.start); took > 2500*time.Millisecond {
			w.Errorf("drained after %v, want soon after 2s: silent connections are closed, not waited for", took)
		}
	})
}

func TestStalledConnectionsAreClosed(t *testing.T) {
	for _, tt := range []struct {
		name, said string
		after      time.Duration
	}{
		{"headers that never end", "GET /slow HTTP/1.1\r\nHost: x", 5 * time.Second},
		{"a body that never ends", "GET /limited HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", 5 * time.Second},
		{"an idle connection", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				conn := w.dial()
				go io.WriteString(conn, tt.said)
				drop(conn)
				if took := time.Since(w.start); took < tt.after || took > tt.after+time.Second {
					w.Errorf("closed after %v, want %v", took, tt.after)
				}
			})
		})
	}
}

// Who hangs up is no longer work, before a drain and during it.
func TestDrainDoesNotWaitForThoseWhoHungUp(t *testing.T) {
	for _, before := range []bool{true, false} {
		inBubble(t, Config{}, func(w *world) {
			ctx, hangUp := context.WithCancel(w.Context())
			gone := w.begin(ctx, "/slow")
			if before {
				hangUp()
				<-gone
			}
			w.stop()
			synctest.Wait()
			hangUp()
			if took, err := w.drained(w.start); err != nil || took > time.Second {
				w.Errorf("hung up before %v: %v after %v", before, err, took)
			}
		})
	}
}

func TestLogNamesTheRoute(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.get("/limited")
		w.send(w.Context(), "HEAD", "/limited")
		w.sendBody(w.Context(), "GET", "/limited", strings.NewReader(strings.Repeat("x", 65537)))
		w.send(w.Context(), "POST", "/limited")
		w.get("/nope")
		want := []string{"GET route=/limited code=200", "HEAD route=/limited code=200", "GET route=/limited code=413",
			"POST route=/limited code=405", "GET route=other code=404"}
		for i, line := range strings.Split(strings.TrimSpace(w.log.String()), "\n") {
			if !strings.Contains(line, "msg=request method="+want[i]) {
				w.Errorf("line %d: %s, want %s", i, line, want[i])
			}
		}
	})
}

func TestServeReportsWhatMadeItImpossible(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	if err := Serve(context.Background(), ln, Config{Log: quiet}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve on a closed listener = %v", err)
	}
	if err := Serve(context.Background(), ln, Config{SlowPermits: -1}); err == nil || !strings.Contains(err.Error(), "-slow-permits") {
		t.Errorf("Serve with a bad config = %v", err)
	}
}

func TestSilentConnsForgetsThoseThatSpeakOrClose(t *testing.T) {
	var s silentConns
	a, b := net.Pipe()
	for c, next := range map[net.Conn]http.ConnState{a: http.StateActive, b: http.StateClosed} {
		s.track(c, http.StateNew)
		s.track(c, next)
		if len(s.since) != 0 {
			t.Errorf("still tracked after %v", next)
		}
	}
}
