package peers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"example.com/storefront/internal/inturn"
	"example.com/storefront/internal/ratelimit"
)

// limiters returns both limiters with the same bucket for each key.
func limiters(b *testing.B, burst int) (*ratelimit.Limiter, limiter.Store) {
	ours, err := ratelimit.New(ratelimit.Config{Burst: burst, Rate: float64(burst) / 3600})
	if err != nil {
		b.Fatal(err)
	}
	peer, err := memorystore.New(&memorystore.Config{Tokens: uint64(burst), Interval: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { peer.Close(context.Background()) })
	return ours, peer
}

// BenchmarkLimiterAllows takes a token of one of 1,000 keys, in turn, by one goroutine and by
// two at once.
func BenchmarkLimiterAllows(b *testing.B) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprint(n, "-at-once"), func(b *testing.B) {
			ours, peer := limiters(b, math.MaxInt32)
			var next atomic.Uint32
			key := func() string { return keys[next.Add(1)%uint32(len(keys))] }
			inturn.Time(b, n,
				inturn.Way{Name: "ours", Call: func() error {
					if !ours.Allow(time.Now(), key()).Allowed {
						return errors.New("refused")
					}
					return nil
				}},
				inturn.Way{Name: "go-limiter", Call: func() error {
					if _, _, _, ok, err := peer.Take(context.Background(), key()); !ok {
						return fmt.Errorf("refused: %v", err)
					}
					return nil
				}},
			)
		})
	}
}

// BenchmarkLimiterRefuses asks for a token that there is not.
func BenchmarkLimiterRefuses(b *testing.B) {
	ours, peer := limiters(b, 1)
	ours.Allow(time.Now(), "k")
	peer.Take(context.Background(), "k")
	inturn.Time(b, 1,
		inturn.Way{Name: "ours", Call: func() error {
			if ours.Allow(time.Now(), "k").Allowed {
				return errors.New("allowed")
			}
			return nil
		}},
		inturn.Way{Name: "go-limiter", Call: func() error {
			if _, _, _, ok, _ := peer.Take(context.Background(), "k"); ok {
				return errors.New("allowed")
			}
			return nil
		}},
	)
}
