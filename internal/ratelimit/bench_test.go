package ratelimit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"example.com/storefront/internal/inturn"
	"example.com/storefront/internal/redistest"
)

// BenchmarkAllow allows requests of one key of many, another one each time, and
// reports what a key costs in memory.
func BenchmarkAllow(b *testing.B) {
	for _, keys := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint("key-", i)
			}
			before := heap()
			l := limiter(b, Config{Burst: math.MaxInt32, Rate: 1e6, MaxKeys: 2 * keys})
			for _, name := range names {
				l.Allow(time.Now(), name)
			}
			bytes := float64(heap()-before) / float64(keys)
			// In any order, as processors read ahead.
			rand.Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !l.Allow(time.Now(), names[i]).Allowed {
					b.Fatal("refused")
				}
				if i++; i == keys {
					i = 0
				}
			}
			if keys >= 1000 { // or the limiter itself is what is measured
				b.ReportMetric(bytes, "bytes/key")
			}
			runtime.KeepAlive(l)
		})
	}
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one may still be sweeping
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkRefuse(b *testing.B) {
	l := limiter(b, Config{Burst: 1, Rate: 0.001})
	l.Allow(time.Now(), "k")
	b.ReportAllocs()
	for b.Loop() {
		if l.Allow(time.Now(), "k").Allowed {
			b.Fatal("allowed")
		}
	}
}

// BenchmarkShared compares what a decision takes in memory and in a Redis on this machine, by one
// goroutine and by 20 at once, of as many keys.
func BenchmarkShared(b *testing.B) {
	server := redistest.Start(b)
	r := openRedis(b, server.URL())
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprint(n, "-at-once"), func(b *testing.B) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprint("key-", i)
			}
			var ways []inturn.Way
			for _, in := range []struct {
				name  string
				redis *Redis
			}{{"memory", nil}, {"redis", r}} {
				var next atomic.Uint32
				l := shared(b, in.redis, Config{Burst: math.MaxInt32, Rate: 1e6})
				ways = append(ways, inturn.Way{Name: in.name, Call: func() error {
					if d := l.Allow(context.Background(), names[next.Add(1)%uint32(n)]); !d.Allowed || d.Fallback {
						return fmt.Errorf("%+v", d)
					}
					return nil
				}})
			}
			inturn.Waits(b, n, ways...)
		})
	}
}

// The figures that can be promised on any machine.
func TestAllowingAKnownKeyAllocatesNothingAndKeysAreSmall(t *testing.T) {
	const keys = 100_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("key-", i)
	}
	before := heap()
	l := limiter(t, Config{Burst: math.MaxInt32, Rate: 1e6, MaxKeys: keys})
	now := time.Now()
	for _, name := range names {
		l.Allow(now, name)
	}
	if bytes := (heap() - before) / keys; bytes > 200 {
		t.Errorf("%d bytes a key, want at most 200", bytes)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() { l.Allow(now, names[i]); i++ }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
