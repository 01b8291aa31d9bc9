// Package ratelimit gives each key a token bucket of its own, on
// golang.org/x/time/rate.
//
// A bucket that nobody touched for as long as it takes to fill is full, just
// like a new one, so dropping it goes unnoticed. Buckets live in two generations of
// maps: every such period the older generation is dropped whole. That takes no
// goroutine and no scan.
//
// A Shared limiter has its buckets in Redis instead, for instances that share them. Its
// client is github.com/gomodule/redigo, as a newcomer's first minute is spent building: on
// two processors a cold build takes 40 s without Redis, 43 s with redigo, 68 s with
// go-redis, and one script and one pool is all that is used.
package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// ErrLimited is for callers of Allow to return when it refuses; Allow itself
// returns no error.
var ErrLimited = errors.New("rate limit exceeded")

// Config sizes the buckets.
type Config struct {
	// Burst is how many tokens a bucket holds, at most 2^31-1. 0 means 3.
	Burst int
	// Rate is how many tokens a second flow into each bucket. 0 means 1.
	Rate float64
	// MaxKeys is how many buckets there are at most. Keys that come after
	// share one bucket: a bucket in use is never dropped to make room, as it
	// would come back full. 0 means 100,000.
	MaxKeys int
}

// Limiter holds the buckets. It is safe for concurrent use.
type Limiter struct {
	cfg    Config
	refill time.Duration // the time in which an empty bucket fills

	mu       sync.Mutex
	current  map[string]*rate.Limiter // guarded by mu; touched since rotated
	previous map[string]*rate.Limiter // guarded by mu; touched in the period before
	overflow *rate.Limiter            // guarded by mu
	rotated  time.Time                // guarded by mu
	latest   time.Time                // guarded by mu; the latest time seen
	used     []string                 // guarded by mu; the keys used last, the latest first

	allowed, rejected uint64 // guarded by mu
}

// New returns a Limiter whose buckets are full, or an error that names the
// field it cannot work with.
func New(cfg Config) (*Limiter, error) {
	switch {
	case cfg.Burst < 0 || cfg.Burst > math.MaxInt32:
		return nil, fmt.Errorf("ratelimit: Burst is %d, must be 0 to %d", cfg.Burst, math.MaxInt32)
	case !(cfg.Rate >= 0) || math.IsInf(cfg.Rate, 0):
		return nil, fmt.Errorf("ratelimit: Rate is %v, must be a number of tokens a second", cfg.Rate)
	case cfg.MaxKeys < 0:
		return nil, fmt.Errorf("ratelimit: MaxKeys is %d, must not be negative", cfg.MaxKeys)
	}
	cfg.Burst = cmp.Or(cfg.Burst, 3)
	cfg.Rate = cmp.Or(cfg.Rate, 1)
	cfg.MaxKeys = cmp.Or(cfg.MaxKeys, 100_000)
	// The millisecond is for the rounding of x/time/rate's floating point.
	l := &Limiter{cfg: cfg, refill: seconds(float64(cfg.Burst)/cfg.Rate) + time.Millisecond}
	l.Reset()
	return l, nil
}

// Reset makes every bucket full, and forgets what was counted.
func (l *Limiter) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.previous = map[string]*rate.Limiter{}, nil
	l.overflow = l.bucket()
	l.used = nil
	l.allowed, l.rejected = 0, 0
}

// Decision is the answer to one request, allowed or not.
type Decision struct {
	Allowed bool
	// Left is how many whole tokens the bucket holds afterwards.
	Left int
	// Next is the time until it holds one more, in whole seconds, rounded up
	// so that a client that waits it out is served; at least 1 s.
	Next time.Duration
	// Overflow says that the key had no room for a bucket of its own.
	Overflow bool
	// Fallback says that a Shared limiter asked its local one.
	Fallback bool
}

// String is allowed, rejected or, if rejected for a key without a bucket of its own,
// overflow.
func (d Decision) String() string {
	switch {
	case d.Allowed:
		return "allowed"
	case d.Overflow:
		return "overflow"
	default:
		return "rejected"
	}
}

// Allow takes a token from key's bucket if there is one at time now; a refusal
// takes nothing. If now is before the latest time seen, that time is used: a
// clock that steps back must not mint tokens.
func (l *Limiter) Allow(now time.Time, key string) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, bucket := l.touch(now, key)
	allowed := bucket.AllowN(now, 1)
	d := l.decide(allowed, bucket.TokensAt(now))
	d.Overflow = bucket == l.overflow
	return d
}

// touch returns key's bucket, or the one of all that have none, and the time that it is.
// It must be called with mu held, and decide too.
func (l *Limiter) touch(now time.Time, key string) (time.Time, *rate.Limiter) {
	if now.Before(l.latest) {
		now = l.latest
	}
	l.latest = now
	l.rotate(now)
	bucket := l.find(key)
	if bucket != l.overflow {
		l.use(key)
	}
	return now, bucket
}

// decide counts a decision that left a bucket with tokens.
func (l *Limiter) decide(allowed bool, tokens float64) Decision {
	if allowed {
		l.allowed++
	} else {
		l.rejected++
	}
	left := max(0, int(tokens)) // x/time/rate forgives a deficit below 1 ns
	return Decision{Allowed: allowed, Left: left, Next: max(time.Second, l.timeFor(float64(left)+1-tokens))}
}

// Policy is the quota as the RateLimit-Policy header has it
// (draft-ietf-httpapi-ratelimit-headers): the burst, and the time to refill it,
// rounded up to whole seconds.
func (l *Limiter) Policy() (quota int, window time.Duration) {
	return l.cfg.Burst, l.timeFor(float64(l.cfg.Burst))
}

// timeFor is the time in which tokens flow into a bucket, in whole seconds.
func (l *Limiter) timeFor(tokens float64) time.Duration {
	const noise = 1e-9 // 21/0.7 is a little more than 30 in floating point
	return seconds(math.Ceil(tokens/l.cfg.Rate - noise))
}

// Snapshot is a limiter at one moment. Taking it changes nothing.
type Snapshot struct {
	Keys     int     `json:"keys"`     // how many have a bucket of their own
	MaxKeys  int     `json:"max_keys"` // how many may
	Allowed  uint64  `json:"allowed"`  // since the start or Reset
	Rejected uint64  `json:"rejected"` // since the start or Reset
	Burst    int     `json:"burst"`    // tokens that a bucket holds
	Rate     float64 `json:"rate"`     // tokens that flow into it, a second
}

// Snapshot reports the buckets held at time now, and the decisions.
func (l *Limiter) Snapshot(now time.Time) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	current, previous := l.generations(now)
	return Snapshot{
		Keys: len(current) + len(previous), MaxKeys: l.cfg.MaxKeys,
		Allowed: l.allowed, Rejected: l.rejected,
		Burst: l.cfg.Burst, Rate: l.cfg.Rate,
	}
}

// generations are those of time now, rotated or not. It must be called with mu held.
func (l *Limiter) generations(now time.Time) (current, previous map[string]*rate.Limiter) {
	if l.due(now) {
		return nil, l.recent(now)
	}
	return l.current, l.previous
}

// rotate drops the buckets untouched for a whole refill, and so full again.
func (l *Limiter) rotate(now time.Time) {
	if l.due(now) {
		l.current, l.previous = map[string]*rate.Limiter{}, l.recent(now)
		l.rotated = now
	}
}

// due must be called with mu held, and recent too.
func (l *Limiter) due(now time.Time) bool { return now.Sub(l.rotated) >= l.refill }

// recent is the current generation, nil if that is as old as a dropped one.
func (l *Limiter) recent(now time.Time) map[string]*rate.Limiter {
	if now.Sub(l.rotated) < 2*l.refill {
		return l.current
	}
	return nil
}

// find returns key's bucket, as one of the current generation.
func (l *Limiter) find(key string) *rate.Limiter {
	if bucket, ok := l.current[key]; ok {
		return bucket
	}
	bucket, ok := l.previous[key]
	switch {
	case ok:
		delete(l.previous, key)
	case len(l.current)+len(l.previous) >= l.cfg.MaxKeys:
		return l.overflow
	default:
		bucket = l.bucket()
	}
	l.current[key] = bucket
	return bucket
}

func (l *Limiter) bucket() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.cfg.Rate), l.cfg.Burst)
}

// seconds is s as a duration, at most 68 years (2^31 s), so that slow rates do
// not overflow.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, math.MaxInt32) * float64(time.Second))
}
