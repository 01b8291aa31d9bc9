package ratelimit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"example.com/storefront/internal/redistest"
)

// Many at once at many instances get what one would give out, and not one more.
func TestInstancesShareExactly(t *testing.T) {
	server := redistest.Start(t)
	for _, instances := range []int{2, 5} {
		for _, burst := range []int{3, 100} {
			t.Run(fmt.Sprintf("%d instances, burst %d", instances, burst), func(t *testing.T) {
				var allowed atomic.Int64
				var wg sync.WaitGroup
				key := t.Name()
				for range instances {
					l := shared(t, openRedis(t, server.URL()), Config{Burst: burst, Rate: 0.001})
					for range 20 {
						wg.Go(func() {
							for range 10 {
								d := l.Allow(context.Background(), key)
								if d.Fallback {
									t.Errorf("not asked: %+v", l.redis.failed.Load())
								}
								if d.Allowed {
									allowed.Add(1)
								}
							}
						})
					}
				}
				wg.Wait()
				if n := allowed.Load(); n != int64(burst) {
					t.Errorf("%d allowed, want %d", n, burst)
				}
			})
		}
	}
}

func TestKeysHaveAPrefixAndExpireOnceFull(t *testing.T) {
	server := redistest.Start(t)
	r := openRedis(t, server.URL())
	l := shared(t, r, Config{Burst: 2, Rate: 10})
	allow := func() Decision { return l.Allow(context.Background(), "a key: *") }
	for range 3 {
		allow()
	}
	const key = "storefront:test:a key: *"
	if keys := keys(t, server); !slices.Contains(keys, key) {
		t.Errorf("keys are %q, without %q", keys, key)
	}
	if ms, err := redis.Int(server.Do("PTTL", key), nil); err != nil || ms > 201 {
		t.Errorf("expires in %d ms, %v; want 201 at most", ms, err)
	}
	server.Do("FLUSHALL") // as when it has expired
	if d := allow(); !d.Allowed || d.Left != 1 || d.Fallback {
		t.Errorf("afterwards: %+v", d)
	}

	// To the millisecond, by a clock that stands.
	r.script = redis.NewScript(1, withClock(t, takeSource))
	server.Do("FLUSHALL")
	server.Do("HSET", "clock", "s", epoch.Unix(), "us", 0)
	for i, want := range []int{101, 201, 201} {
		allow()
		if ms, err := redis.Int(server.Do("HGET", key, "expires"), nil); err != nil || ms != want {
			t.Errorf("request %d: expires in %d ms, %v; want %d", i, ms, err, want)
		}
	}
	l = shared(t, r, Config{Rate: math.SmallestNonzeroFloat64})
	allow()
	if ms, err := redis.Int64(server.Do("HGET", key, "expires"), nil); err != nil || ms != 1e15 {
		t.Errorf("never full: expires in %d ms, %v; want 1e15", ms, err)
	}
}

// keys are all keys there, and must be ours.
func keys(t *testing.T, server *redistest.Server) []string {
	t.Helper()
	keys, err := redis.Strings(server.Do("KEYS", "*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "storefront:") {
			t.Errorf("%q has no prefix", key)
		}
	}
	return keys
}

// Beside the table: any requests, at times and rates that floating point has exactly, as the
// two add up in different order.
func TestAnyTimelineIsTheSameInRedis(t *testing.T) {
	server := redistest.Start(t)
	r := openRedis(t, server.URL())
	r.script = redis.NewScript(1, withClock(t, takeSource))
	clock, err := redis.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	rates := []float64{0.125, 0.5, 1, 2, 8}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		cfg := Config{Burst: 1 + random.IntN(5), Rate: rates[random.IntN(len(rates))]}
		memory := limiter(t, cfg)
		inRedis, err := NewShared(r, fmt.Sprint(seed), cfg)
		if err != nil {
			t.Fatal(err)
		}
		now := epoch
		for i := range 100 {
			const step = time.Second / 64
			now = now.Add(time.Duration(random.IntN(int(2*time.Second/step/time.Duration(1+9*random.IntN(2))))) * step)
			key := fmt.Sprint("k", random.IntN(2))
			if _, err := clock.Do("HSET", "clock", "s", now.Unix(), "us", now.Nanosecond()/1000); err != nil {
				t.Fatal(err)
			}
			want := memory.Allow(now, key)
			if got := inRedis.Allow(context.Background(), key); got != want {
				t.Fatalf("seed %d, %+v, request %d at %v of %s: %#v in Redis, %#v in memory", seed, cfg, i, now.Sub(epoch), key, got, want)
			}
		}
	}
}

// What others took stays taken when Redis goes.
func TestAnOutageHandsOutNoSecondBurst(t *testing.T) {
	server := redistest.Start(t)
	a, b := openRedis(t, server.URL()), openRedis(t, server.URL())
	cfg := Config{Rate: 0.001}
	here, there := shared(t, a, cfg), shared(t, b, cfg)
	for _, l := range []*Shared{here, there, there, here} {
		l.Allow(context.Background(), "k")
	}
	server.Kill()
	if d := here.Allow(context.Background(), "k"); d.Allowed || !d.Fallback {
		t.Errorf("one too many: %+v", d)
	}
	for _, want := range []bool{true, true, true, false} {
		if d := here.Allow(context.Background(), "another"); d.Allowed != want || !d.Fallback {
			t.Errorf("a key that Redis never told of: %+v, want allowed %t", d, want)
		}
	}
	if got := here.Snapshot(time.Now()); got.Allowed != 4 || got.Rejected != 3 || got.Keys != 2 {
		t.Errorf("%+v, want 4 allowed, 3 rejected, 2 keys", got)
	}
}

// Those without a bucket of their own share one here, but not there.
func TestManyKeysInRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		r := a.open(t, actedURL)
		l := shared(t, r, Config{MaxKeys: 1})
		for i := range 10 {
			if d := l.Allow(context.Background(), fmt.Sprint(i)); !d.Allowed || d.Left != 2 || d.Overflow || d.Fallback {
				t.Errorf("key %d: %+v", i, d)
			}
		}
		a.hung.Store(true)
		for _, want := range []bool{true, true, true, false} {
			if d := l.Allow(context.Background(), "new"); d.Allowed != want || !d.Overflow || !d.Fallback {
				t.Errorf("%+v, want allowed %t of the bucket of all others", d, want)
			}
		}
	})
}

func TestNewSharedNamesTheField(t *testing.T) {
	_, err := NewShared(nil, "test", Config{Burst: -1})
	if want := "ratelimit: Burst is -1, must be 0 to 2147483647"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
