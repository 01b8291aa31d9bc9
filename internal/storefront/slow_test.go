package storefront

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/shed"
)

func TestSlowShedsTheThird(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		first, second := w.begin(w.Context(), "/slow"), w.begin(w.Context(), "/slow")
		third := w.get("/slow")
		w.want(third, "503 busy")
		if waited := time.Since(w.start); waited != 0 || third.header.Get("Retry-After") != "1" {
			w.Errorf("refused after %v with Retry-After %q, want at once with 1", waited, third.header.Get("Retry-After"))
		}
		w.want(w.get("/healthz"), "200 ok")
		w.want(w.get("/readyz"), "200 ready")
		w.want(<-first, "200 done")
		w.want(<-second, "200 done")
		if took := time.Since(w.start); took != 2*time.Second {
			w.Errorf("worked for %v, want 2s", took)
		}
		w.want(w.get("/slow"), "200 done")
	})
}

func TestSlowHangUpFreesThePlaceAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		ctx, hangUp := context.WithCancel(w.Context())
		w.begin(ctx, "/slow")
		w.begin(ctx, "/slow")
		time.Sleep(time.Second)
		hangUp()
		synctest.Wait()
		if got := w.service.shedder.Snapshot().InUse; got != 0 {
			w.Errorf("%d places in use after the hang-ups, want 0", got)
		}
		w.want(w.get("/slow"), "200 done")
	})
}

func TestLongWorkStillGetsItsAnswer(t *testing.T) {
	inBubble(t, Config{SlowWork: time.Hour}, func(w *world) {
		w.want(w.get("/slow"), "200 done")
	})
}

// asks sends requests to /slow in this order, each with its Priority header, and
// returns what became of them in the order of their ends.
func (w *world) asks(priorities ...string) (ends []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, priority := range priorities {
		all.Go(func() {
			var header []string
			if priority != "" {
				header = []string{"Priority: " + priority}
			}
			a := w.get("/slow", header...)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, fmt.Sprintf("%d: %v at %v", i+1, a, time.Since(w.start)))
		})
		synctest.Wait()
	}
	all.Wait()
	return ends
}

func TestSlowPolicies(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		asks []string
		want []string
	}{
		{"newest: no queue", Config{}, []string{"u=3", "u=0"}, []string{
			"2: 503 busy at 0s", "1: 200 done at 2s",
		}},
		{"wait: a queue in the order of arrival", Config{SlowPolicy: shed.Wait, SlowQueue: 2}, []string{"", "u=7", "u=0", "u=0"}, []string{
			"4: 503 busy at 0s", "1: 200 done at 2s", "2: 200 done at 4s", "3: 200 done at 6s",
		}},
		{"wait: who waited too long", Config{SlowPolicy: shed.Wait, SlowMaxWait: 3 * time.Second}, []string{"", "", ""}, []string{
			"1: 200 done at 2s", "3: 503 busy at 3s", "2: 200 done at 4s",
		}},
		{"priority: the least urgent goes", Config{SlowPolicy: shed.Priority, SlowQueue: 2}, []string{"", "u=7", "", "u=0, i"}, []string{
			"2: 503 busy at 0s", "1: 200 done at 2s", "4: 200 done at 4s", "3: 200 done at 6s",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.SlowPermits = 1
			inBubble(t, tt.cfg, func(w *world) {
				if got := w.asks(tt.asks...); !slices.Equal(got, tt.want) {
					w.Errorf("got  %q\nwant %q", got, tt.want)
				}
				if got := w.service.shedder.Snapshot(); got.InUse != 0 || got.Waiting != 0 {
					w.Errorf("%+v at the end", got)
				}
			})
		})
	}
}

func TestSlowHangUpFreesThePlaceInTheQueueAtOnce(t *testing.T) {
	inBubble(t, Config{SlowPolicy: shed.Wait, SlowPermits: 1, SlowQueue: 1}, func(w *world) {
		first := w.begin(w.Context(), "/slow")
		ctx, hangUp := context.WithCancel(w.Context())
		w.begin(ctx, "/slow")
		w.want(w.get("/slow"), "503 busy")
		hangUp()
		synctest.Wait()
		if got := w.service.shedder.Snapshot(); got.Waiting != 0 || got.InUse != 1 {
			w.Errorf("%+v after the hang-up, want nobody waiting", got)
		}
		w.want(w.get("/slow"), "200 done")
		w.want(<-first, "200 done")
	})
}

// The server's own deadline leaves time for the longest wait and the work after it.
func TestLongWaitsStillGetTheirAnswer(t *testing.T) {
	inBubble(t, Config{SlowPolicy: shed.Wait, SlowPermits: 1, SlowWork: time.Minute, SlowMaxWait: time.Hour}, func(w *world) {
		for _, got := range w.asks("", "", "", "", "") {
			if !strings.Contains(got, ": 200 done at ") {
				w.Error(got)
			}
		}
	})
}

// Middleware in front may have a deadline and a cause of its own.
func TestDeadlineInFrontIsA504(t *testing.T) {
	inBubble(t, Config{SlowPolicy: shed.Wait, SlowPermits: 1}, func(w *world) {
		served := w.service.Handler
		w.service.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeoutCause(r.Context(), time.Second, errors.New("a budget of its own"))
			defer cancel()
			served.ServeHTTP(rw, r.WithContext(ctx))
		})
		working, waiting := w.begin(w.Context(), "/slow"), w.begin(w.Context(), "/slow")
		w.want(<-working, "504 context deadline exceeded")
		w.want(<-waiting, "504 context deadline exceeded")
	})
}

func TestUrgency(t *testing.T) {
	for value, want := range map[string]int{
		"u=0": 0, "u=1": 1, "u=7": 7, "i, u=5": 5, "u=2;x=1": 2, "u=1, u=2": 2, "  u=4 ": 4, `a="u=0,", u=6`: 6,
		"": 3, "i": 3, "u": 3, "u=8": 3, "u=-1": 3, "u=1.0": 3, `u="1"`: 3, "u=(1)": 3, "u=x": 3, "u=": 3, "u=1,": 3, "u=1 i": 3,
		"U=1": 3, "u=1, !": 3, "u=99999999999999999999": 3, "ü=1": 3, "u=?1": 3,
	} {
		if got := urgency(&http.Request{Header: http.Header{"Priority": {value}}}); got != want {
			t.Errorf("Priority %q: urgency %d, want %d", value, got, want)
		}
	}
	if got := urgency(&http.Request{}); got != 3 {
		t.Errorf("no Priority: urgency %d, want 3", got)
	}
	if got := urgency(&http.Request{Header: http.Header{"Priority": {"i", "u=2"}}}); got != 2 {
		t.Errorf("two lines: urgency %d, want 2", got)
	}
}

func FuzzUrgency(f *testing.F) {
	for _, seed := range []string{"u=0", "u=9", "i, u=5;x=1", `a="u=0,", u=6`, "u=1,", "u=-1", "u=(1 2)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := urgency(&http.Request{Header: http.Header{"Priority": {value}}})
		if got < 0 || got > 7 {
			t.Errorf("Priority %q: urgency %d", value, got)
		}
	})
}

// The cap over all business routes. What serves them is exempt, so a full service
// never waits for itself.
func TestInFlightCap(t *testing.T) {
	inBubble(t, Config{MaxInFlight: 2, CallerRate: 1, CallerBurst: 3}, func(w *world) {
		w.begin(w.Context(), "/slow")
		last := w.begin(w.Context(), "/slow")
		got := w.get("/limited")
		w.want(got, "503 busy")
		if got.header.Get("Retry-After") != "1" || got.header.Get("RateLimit") != `"caller";r=0;t=1` {
			w.Errorf("%v, want Retry-After: 1, and a token taken before the cap was looked at", got.header)
		}
		w.want(w.get("/limited"), "429 rate limit exceeded")
		for _, path := range []string{"/healthz", "/readyz", "/upstream/profiles/ada", ledger} {
			if got := w.get(path); got.status != 200 {
				w.Errorf("%s: %v, want 200 while the service is full", path, got)
			}
		}
		<-last
		w.want(w.get("/checkout"), `200 {"call":3}`)
		if got := w.service.inFlight.Snapshot(); got.InUse != 0 || got.Rejected != 1 {
			w.Errorf("%+v, want none in use and 1 rejected", got)
		}
	})
}
