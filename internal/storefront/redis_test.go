package storefront

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/redistest"
	"example.com/storefront/internal/transcript"
)

// Instances that share a rate limit, over real sockets and with a real Redis, and so in real
// time. How a Redis fails, under a fake clock too, is tested in internal/ratelimit.

// instance is one of several.
type instance struct {
	*testing.T
	*service
	url string
	log transcript.Buffer
}

func newInstance(t *testing.T, cfg Config) *instance {
	t.Helper()
	i := &instance{T: t}
	cfg.Log = slog.New(slog.NewTextHandler(&i.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var err error
	if i.service, err = newService(cfg); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(i.service)
	i.url = server.URL
	t.Cleanup(func() {
		server.Close()
		_ = i.Close()
	})
	return i
}

// get returns the status and the body, or 0 and an error.
func (i *instance) get(path, key string) (int, string) {
	req, err := http.NewRequestWithContext(i.Context(), http.MethodGet, i.url+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// waitForRedis has the instance wait long, and never decide alone: how well Redis answers is
// this machine's business.
func (i *instance) waitForRedis() {
	i.Helper()
	err := i.Close()
	if err == nil {
		i.redis, err = ratelimit.OpenRedis(ratelimit.RedisConfig{URL: i.cfg.Redis, Timeout: 10 * time.Second})
	}
	if err == nil {
		err = i.newLimits()
	}
	if err != nil {
		i.Fatal(err)
	}
}

// status is what /status says of it.
func (i *instance) status() limiterSnapshot {
	i.Helper()
	_, body := i.get("/status", "")
	var all struct{ Limiter limiterSnapshot }
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		i.Fatal(err, body)
	}
	return all.Limiter
}

// metric is the value of one.
func (i *instance) metric(name string) string {
	i.Helper()
	_, text := i.get("/metrics", "")
	return seriesOf(text)[name]
}

func (i *instance) until(degraded bool) {
	i.Helper()
	for deadline := time.Now().Add(10 * time.Second); i.status().Degraded != degraded; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			i.Fatalf("degraded is not %t; log:\n%s", degraded, &i.log)
		}
	}
}

func TestInstancesShareThreeTokens(t *testing.T) {
	for _, n := range []int{2, 5} {
		for _, tt := range []struct {
			path string
			cfg  Config
		}{
			{"/limited", Config{LimitRate: 0.001}},
			{"/stock/mug", Config{CallerRate: 0.001, CallerBurst: 3}},
		} {
			t.Run(fmt.Sprint(n, " instances ", tt.path), func(t *testing.T) {
				server := redistest.Start(t)
				tt.cfg.Redis = server.URL()
				var served, refused atomic.Int64
				var all sync.WaitGroup
				for range n {
					i := newInstance(t, tt.cfg)
					i.waitForRedis()
					for range 20 {
						all.Go(func() {
							switch code, body := i.get(tt.path, "k"); code {
							case 200:
								served.Add(1)
							case 429:
								refused.Add(1)
							default:
								t.Errorf("%d %s", code, body)
							}
						})
					}
				}
				all.Wait()
				if served.Load() != 3 || refused.Load() != int64(20*n-3) {
					t.Errorf("%d served and %d refused, want 3 and %d", served.Load(), refused.Load(), 20*n-3)
				}
			})
		}
	}
}

func TestRedisGoesAndComesBackUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name       string
		goes, back func(*redistest.Server)
	}{
		{"killed and restarted", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"stopped and continued", (*redistest.Server).Stop, (*redistest.Server).Continue},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			instances := []*instance{newInstance(t, Config{Redis: server.URL()}), newInstance(t, Config{Redis: server.URL()})}
			for _, i := range instances {
				i.until(false)
			}
			stalls := redistest.Stalls(t)

			type request struct{ sent, took time.Duration }
			start := time.Now()
			var mu sync.Mutex
			var requests []request
			var all sync.WaitGroup
			done, ended := make(chan struct{}), make(chan struct{})
			wait := func(n int) { // until so many requests more have ended
				for range n {
					<-ended
				}
			}
			for n := range 8 {
				all.Go(func() {
					for c := 0; ; c++ {
						select {
						case <-done:
							return
						case <-time.After(2 * time.Millisecond):
						}
						sent := time.Since(start)
						code, body := instances[c%2].get("/limited", fmt.Sprint("k", n))
						took := time.Since(start) - sent
						if code != 200 && code != 429 {
							t.Errorf("lost: %d %s", code, body)
						}
						mu.Lock()
						requests = append(requests, request{sent, took})
						mu.Unlock()
						select {
						case ended <- struct{}{}:
						default: // nobody waits
						}
					}
				})
			}
			defer all.Wait()
			defer sync.OnceFunc(func() { close(done) })()

			wait(500)
			gone := time.Since(start)
			tt.goes(server)
			for _, i := range instances {
				i.until(true)
				if got := i.status(); got.Backend != "redis" {
					t.Errorf("the backend is %q", got.Backend)
				}
				if got := i.metric("ratelimit_degraded"); got != "1" {
					t.Errorf("ratelimit_degraded is %s", got)
				}
			}
			wait(500)
			tt.back(server)
			for _, i := range instances {
				i.until(false)
			}
			wait(500)

			mu.Lock()
			defer mu.Unlock()
			var before []time.Duration
			var slowest time.Duration
			for _, r := range requests {
				if r.sent+r.took < gone {
					before = append(before, r.took)
				} else {
					slowest = max(slowest, r.took)
				}
			}
			if len(before) < 100 || len(requests) < 2*len(before) {
				t.Fatalf("%d requests, %d of them before it went", len(requests), len(before))
			}
			slices.Sort(before)
			usual := before[len(before)/2]
			t.Logf("%d requests; the usual one took %v, the slowest since it went %v; the machine stalls for %v", len(requests), usual, slowest, stalls())
			if slowest > usual+50*time.Millisecond+stalls() {
				t.Errorf("a request took %v", slowest)
			}
			for _, i := range instances {
				if got := i.metric("ratelimit_fallback_total"); got == "0" || got == "" {
					t.Errorf("ratelimit_fallback_total is %q", got)
				}
				i.wantChanges()
			}
		})
	}
}

// wantChanges wants a line in the log for each change, in turn, and nothing else. On a busy
// machine there may be more changes than the test made.
func (i *instance) wantChanges() {
	i.Helper()
	lines := strings.Split(strings.TrimSuffix(i.log.String(), "\n"), "\n")
	for n, line := range lines {
		want := []string{`level=WARN msg="rate limit degraded" redis=127.0.0.1:`, `level=INFO msg="rate limit shared" redis=127.0.0.1:`}[n%2]
		if !strings.HasPrefix(line, want) {
			i.Errorf("line %d is not %s…; the log:\n%s", n+1, want, &i.log)
		}
	}
	if len(lines)%2 != 0 {
		i.Errorf("no line says that it is back; the log:\n%s", &i.log)
	}
}

func TestAServiceStartsWithoutItsRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	i := newInstance(t, Config{Redis: server.URL(), LimitRate: 0.001})
	if got, want := i.log.String(), `level=WARN msg="rate limit degraded" redis=`+server.Addr+` err="dial tcp `+server.Addr+`: connect: connection refused"`+"\n"; got != want {
		t.Errorf("logged\n%swant\n%s", got, want)
	}
	if got := i.status(); got.Backend != "redis" || !got.Degraded {
		t.Errorf("%+v", got)
	}
	for _, want := range []int{200, 200, 200, 429} {
		if code, body := i.get("/limited", "k"); code != want {
			t.Errorf("%d %s, want %d", code, body, want)
		}
	}
	if got := i.metric("ratelimit_fallback_total"); got != "4" {
		t.Errorf("ratelimit_fallback_total is %s, want 4", got)
	}
	server.Restart()
	i.until(false)
	i.wantChanges()
}

// The log has the server of a Redis, and never the password to it.
func TestNoPasswordIsLogged(t *testing.T) {
	i := newInstance(t, Config{Redis: "redis://me:secret@" + redistest.FreeAddr(t) + "/0"})
	if log := i.log.String(); !strings.Contains(log, "rate limit degraded") || strings.Contains(log, "secret") {
		t.Errorf("logged\n%s", log)
	}
}

// Those of others are in there too.
func TestAResetLeavesTheBucketsInRedis(t *testing.T) {
	server := redistest.Start(t)
	i := newInstance(t, Config{Redis: server.URL(), LimitRate: 0.001})
	i.waitForRedis()
	for range 3 {
		i.get("/limited", "k")
	}
	req := httptest.NewRequest(http.MethodPost, "http://localhost/reset", nil)
	if err := i.reset(httptest.NewRecorder(), req); err != nil {
		t.Fatal(err)
	}
	if code, body := i.get("/limited", "k"); code != 429 {
		t.Errorf("%d %s after a reset, want 429", code, body)
	}
}
