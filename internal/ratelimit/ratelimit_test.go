package ratelimit

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func limiter(t testing.TB, cfg Config) *Limiter {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whatever the numbers, waiting as told is enough.
func TestWhoeverWaitsAsToldIsServed(t *testing.T) {
	for _, rate := range []float64{0.001, 0.07, 0.1, 0.3, 1.0 / 3, 0.7, 0.9, 1, 1.1, 3, 7.7} {
		for burst := 1; burst <= 3; burst++ {
			l := limiter(t, Config{Burst: burst, Rate: rate})
			now := epoch
			for i := range 2000 {
				d := l.Allow(now, "k")
				if d.Allowed {
					now = now.Add(time.Duration(i) * 137 * time.Microsecond)
					continue
				}
				now = now.Add(d.Next)
				if d := l.Allow(now, "k"); !d.Allowed {
					t.Fatalf("rate %v burst %d: told to wait, waited, refused: %+v", rate, burst, d)
				}
			}
		}
	}
}

func TestIdleBucketsGoWhenTheyAreFull(t *testing.T) {
	l := limiter(t, Config{}) // full after 3 s
	now := epoch
	for i := range 1000 {
		l.Allow(now, fmt.Sprint(i))
	}
	for range 10 { // one key stays busy
		now = now.Add(time.Second)
		l.Allow(now, "busy")
	}
	if got := l.Snapshot(now).Keys; got != 1 {
		t.Errorf("%d keys held, want the busy one alone", got)
	}
	now = now.Add(time.Hour)
	l.Allow(now, "other")
	if got := l.Snapshot(now).Keys; got != 1 {
		t.Errorf("%d keys held after an hour, want 1", got)
	}
}

// A snapshot forgets idle buckets as a request would, without one.
func TestSnapshotOfAnIdleLimiter(t *testing.T) {
	l := limiter(t, Config{MaxKeys: 9}) // full after 3 s and 1 ms
	l.Allow(epoch, "a")                 // which begins a generation
	for range 4 {
		l.Allow(epoch.Add(2*time.Second), "b")
	}
	const full = 3*time.Second + time.Millisecond
	for _, tt := range []struct {
		at   time.Duration
		keys int
	}{
		{2 * time.Second, 2},
		{full, 2},
		{2*full - 1, 2},
		{2 * full, 0},
		{time.Hour, 0},
	} {
		want := Snapshot{Keys: tt.keys, MaxKeys: 9, Allowed: 4, Rejected: 1, Burst: 3, Rate: 1}
		for range 2 {
			if got := l.Snapshot(epoch.Add(tt.at)); got != want {
				t.Errorf("after %v: %+v, want %+v", tt.at, got, want)
			}
		}
	}
	if d := l.Allow(epoch.Add(2*time.Second), "b"); d.Allowed {
		t.Error("looking filled a bucket")
	}
}

func TestReset(t *testing.T) {
	l := limiter(t, Config{Burst: 1, MaxKeys: 1})
	for _, key := range []string{"a", "a", "overflow", "overflow"} {
		l.Allow(epoch, key)
	}
	l.Reset()
	if got, want := l.Snapshot(epoch), (Snapshot{MaxKeys: 1, Burst: 1, Rate: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, key := range []string{"a", "overflow"} {
		if d := l.Allow(epoch, key); !d.Allowed {
			t.Errorf("%s: %+v, want a full bucket", key, d)
		}
	}
	if d := l.Allow(epoch.Add(-time.Hour), "a"); d.Allowed {
		t.Error("a clock that steps back mints tokens after a reset")
	}
}

// A bucket is dropped only when a new one would be no different: run the same
// requests against buckets that are never dropped.
func TestEvictionIsLossless(t *testing.T) {
	cfg := Config{Burst: 3, Rate: 1}
	l := limiter(t, cfg)
	kept := map[string]*Limiter{}
	state := uint64(1)
	random := func(n uint64) uint64 { state = state*6364136223846793005 + 1442695040888963407; return state >> 33 % n }
	now := epoch
	for i := range 20_000 {
		now = now.Add(time.Duration(random(1200)) * time.Millisecond)
		key := fmt.Sprint(random(6))
		if kept[key] == nil {
			kept[key] = limiter(t, cfg)
			kept[key].refill = math.MaxInt64 / 2 // never rotates
		}
		if got, want := l.Allow(now, key), kept[key].Allow(now, key); got.Allowed != want.Allowed || got.Left != want.Left {
			t.Fatalf("request %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestAtTheCapNewKeysShareOneBucketAndOldOnesKeepTheirs(t *testing.T) {
	l := limiter(t, Config{MaxKeys: 2})
	for range 3 {
		l.Allow(epoch, "a")
		l.Allow(epoch, "b")
	}
	for i := range 1000 {
		d := l.Allow(epoch, fmt.Sprint("invented", i))
		if !d.Overflow || d.Allowed != (i < 3) {
			t.Fatalf("invented key %d: %+v", i, d)
		}
	}
	if d := l.Allow(epoch, "a"); d.Allowed || d.Overflow {
		t.Errorf("a: %+v, want its own empty bucket", d)
	}
	if got := l.Snapshot(epoch).Keys; got != 2 {
		t.Errorf("%d keys, want 2", got)
	}
	// One of the two is of the older generation now; it counts all the same.
	l.Allow(epoch.Add(3100*time.Millisecond), "a")
	if d := l.Allow(epoch.Add(3100*time.Millisecond), "d"); !d.Overflow {
		t.Errorf("a third key beside one of each generation: %+v", d)
	}
}

// After one refill the buckets are the older generation, after two they are gone.
func TestStaleKeysDoNotHoldTheCap(t *testing.T) {
	const refill = 3*time.Second + time.Millisecond
	for _, tt := range []struct {
		after    time.Duration
		overflow bool
	}{{refill - 1, true}, {refill, true}, {2*refill - 1, true}, {2 * refill, false}} {
		l := limiter(t, Config{MaxKeys: 2})
		l.Allow(epoch, "a")
		l.Allow(epoch, "b")
		if d := l.Allow(epoch.Add(tt.after), "c"); d.Overflow != tt.overflow {
			t.Errorf("after %v: %+v, want overflow %v", tt.after, d, tt.overflow)
		}
	}
}

func TestParallelRequestsGetTheBurstAndNoMore(t *testing.T) {
	l := limiter(t, Config{Burst: 10})
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			if l.Allow(epoch, "k").Allowed {
				allowed.Add(1)
			}
		})
	}
	all.Wait()
	if allowed.Load() != 10 {
		t.Errorf("%d of 500 allowed, want 10", allowed.Load())
	}
}

func TestPolicyIsTheBurstAndTheTimeToRefillIt(t *testing.T) {
	for _, tt := range []struct {
		cfg    Config
		quota  int
		window time.Duration
	}{
		{Config{}, 3, 3 * time.Second},
		{Config{Burst: 10, Rate: 3}, 10, 4 * time.Second},
		{Config{Burst: 1, Rate: 1000}, 1, time.Second},
		{Config{Burst: 21, Rate: 0.7}, 21, 30 * time.Second},
	} {
		quota, window := limiter(t, tt.cfg).Policy()
		if quota != tt.quota || window != tt.window {
			t.Errorf("%+v: %d in %v, want %d in %v", tt.cfg, quota, window, tt.quota, tt.window)
		}
	}
}

func TestRefusingAllocatesNothing(t *testing.T) {
	l := limiter(t, Config{Burst: 1})
	l.Allow(epoch, "k")
	if n := testing.AllocsPerRun(100, func() { l.Allow(epoch, "k") }); n > 0 {
		t.Errorf("%v allocations a refusal, want 0", n)
	}
}

func TestNewNamesTheFieldItCannotWorkWith(t *testing.T) {
	for field, cfgs := range map[string][]Config{
		"Burst":   {{Burst: -1}, {Burst: math.MaxInt32 + 1}},
		"Rate":    {{Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}},
		"MaxKeys": {{MaxKeys: -1}},
	} {
		for _, cfg := range cfgs {
			if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%+v: %v, want an error that names %s", cfg, err, field)
			}
		}
	}
}

func TestDecisionsAsWords(t *testing.T) {
	for want, d := range map[string]Decision{
		"allowed": {Allowed: true, Overflow: true}, "rejected": {}, "overflow": {Overflow: true},
	} {
		if got := d.String(); got != want {
			t.Errorf("%+v: %s, want %s", d, got, want)
		}
	}
}
