package ratelimit

import (
	"context"
	"time"
)

// Shared is a limiter whose buckets are in Redis, so that all instances that ask it give
// out the tokens of one. Redis's clock decides. When it does not answer in time, the
// local limiter stands in; that follows what Redis says, so that an outage does not hand
// out a full bucket anew.
//
// It is safe for concurrent use.
type Shared struct {
	*Limiter        // the local one, which counts the decisions of both
	redis    *Redis // nil: none
	name     string
}

// NewShared returns a Shared limiter, or an error that names the field it cannot work
// with. Those with one name and one Redis share their buckets; without a Redis, nil, there
// are only local ones. MaxKeys bounds those alone: in Redis they expire when they are full.
func NewShared(r *Redis, name string, cfg Config) (*Shared, error) {
	local, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Shared{local, r, name}, nil
}

// Allow takes a token from key's bucket if there is one; a refusal takes nothing.
func (s *Shared) Allow(ctx context.Context, key string) Decision {
	if s.redis == nil {
		return s.Limiter.Allow(time.Now(), key)
	}
	allowed, tokens, err := s.redis.take(ctx, s.name+":"+key, s.cfg)
	if err != nil {
		d := s.Limiter.Allow(time.Now(), key)
		d.Fallback = true
		return d
	}
	return s.follow(time.Now(), key, allowed, tokens)
}

// follow makes of what Redis says a decision, and lets key's bucket hold no more whole
// tokens than the one there.
func (l *Limiter) follow(now time.Time, key string, allowed bool, tokens float64) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, bucket := l.touch(now, key)
	if surplus := int(bucket.TokensAt(now)) - int(tokens); surplus > 0 && bucket != l.overflow {
		bucket.AllowN(now, surplus)
	}
	return l.decide(allowed, tokens)
}
