package ratelimit

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// recentKeys is how many keys Recent knows.
const recentKeys = 8

// Bucket is the bucket of a key at one moment.
type Bucket struct {
	Key    string
	Tokens float64 // from 0 to Burst
}

// Recent has the buckets of the keys used last as of time now, at most eight, the latest
// first. One that has been dropped, as it was full again, is not among them. Looking
// changes nothing.
func (l *Limiter) Recent(now time.Time) []Bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	current, previous := l.generations(now)
	buckets := []Bucket{}
	for _, key := range l.used {
		for _, generation := range []map[string]*rate.Limiter{current, previous} {
			if bucket, ok := generation[key]; ok {
				buckets = append(buckets, Bucket{key, max(0, bucket.TokensAt(now))})
			}
		}
	}
	return buckets
}

// use moves key to the front of used. It must be called with mu held.
func (l *Limiter) use(key string) {
	i := slices.Index(l.used, key)
	if i < 0 {
		if len(l.used) < recentKeys {
			l.used = append(l.used, "")
		}
		i = len(l.used) - 1
	}
	copy(l.used[1:], l.used[:i])
	l.used[0] = key
}
