package ratelimit

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"example.com/storefront/internal/breaker"
)

// What a Redis that is not well may cost: a few decisions wait for it in vain, then only
// one now and then.
const (
	failures = 3           // in a row, after which none asks
	pause    = time.Second // until one asks again
	maxConns = 100         // decisions that may ask at once
)

// RedisConfig says which Redis to ask.
type RedisConfig struct {
	// URL is redis://[[user]:password@]host[:port][/database], or rediss:// for TLS.
	URL string
	// Timeout is how long a decision waits for Redis, for a connection too. 0 means 20 ms.
	Timeout time.Duration
	// Dial makes connections. nil means as net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnChange is called when Redis is given up, with the error it was given up for, and
	// when it is back, in order and one at a time. nil means nobody.
	OnChange func(degraded bool, err error)
}

// Redis is a server where instances keep the buckets that they share. It is asked as long
// as it answers, and once a second when it does not. It is safe for concurrent use.
type Redis struct {
	cfg     RedisConfig
	pool    redis.Pool
	breaker *breaker.Breaker
	script  *redis.Script
	wake    *time.Timer             // for tend
	failed  atomic.Pointer[failure] // the latest
	closed  atomic.Bool
}

type failure struct {
	at  time.Time
	err error
}

//go:embed take.lua
var takeSource string

// OpenRedis returns the Redis at cfg.URL, or an error if that is no URL. It asks whether
// Redis is there, up to three times; one that is not there it returns as degraded.
func OpenRedis(cfg RedisConfig) (*Redis, error) {
	u, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("ratelimit: URL: %w", err)
	}
	cfg.URL = u.String()
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("ratelimit: Timeout is %v, must not be negative", cfg.Timeout)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 20*time.Millisecond)
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func(bool, error) {}
	}
	r := &Redis{cfg: cfg, script: redis.NewScript(1, takeSource)}
	r.wake = time.AfterFunc(pause, r.tend)
	r.wake.Stop()
	r.pool = redis.Pool{
		MaxActive:   maxConns,
		MaxIdle:     maxConns,
		IdleTimeout: 30 * time.Second,
		DialContext: dialer(cfg),
		// What broke one connection may have broken all that were open: without this,
		// each of them fails once more after Redis has come back.
		TestOnBorrow: func(_ redis.Conn, lastUsed time.Time) error {
			if f := r.failed.Load(); f != nil && !lastUsed.After(f.at) {
				return f.err
			}
			return nil
		},
	}
	r.breaker, err = breaker.New(breaker.Config{
		Failures: failures,
		Cooldown: pause,
		Probes:   1,
		Neutral:  r.neutral,

		OnTransition: r.changed,
	})
	if err != nil {
		return nil, err
	}
	for range failures {
		if r.probe() == nil {
			break
		}
	}
	return r, nil
}

// dialer makes connections within the deadline of ctx, which redigo minds only until the
// first byte: TLS and the password come after.
func dialer(cfg RedisConfig) func(context.Context) (redis.Conn, error) {
	return func(ctx context.Context) (redis.Conn, error) {
		stop := func() bool { return true }
		conn, err := redis.DialURLContext(ctx, cfg.URL,
			redis.DialReadTimeout(cfg.Timeout), redis.DialWriteTimeout(cfg.Timeout),
			redis.DialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := cfg.Dial(ctx, network, address)
				if err == nil {
					stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // it is given up
				}
				return conn, err
			}))
		if !stop() && err == nil { // closed meanwhile
			return nil, errors.Join(ctx.Err(), conn.Close())
		}
		return conn, err
	}
}

// neutral says whether an error shows nothing about Redis: the client went away, too many
// came at once, or after Close.
func (r *Redis) neutral(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrPoolExhausted) || r.closed.Load()
}

// changed tells who wants to know, and has an open breaker tended.
func (r *Redis) changed(t breaker.Transition) {
	switch {
	case t.From == breaker.Closed:
		r.cfg.OnChange(true, r.failed.Load().err)
	case t.To == breaker.Closed:
		r.cfg.OnChange(false, nil)
	}
	if t.To == breaker.Open {
		r.tendLater()
	}
}

// tend probes until Redis is back, even if nobody comes. Once is not enough: a client may
// take the place of the probe, and leave.
func (r *Redis) tend() {
	if r.closed.Load() || !r.Degraded() {
		return
	}
	if err := r.probe(); err != nil {
		r.tendLater()
	}
}

func (r *Redis) tendLater() { r.wake.Reset(pause + time.Millisecond) } // strictly after the cool-down

// probe asks as a decision does, for a bucket of its own that is soon full again.
func (r *Redis) probe() error {
	_, _, err := r.take(context.Background(), "probe", Config{Burst: 1000, Rate: 1000})
	return err
}

// Degraded says whether Redis is not asked, or has yet to show that it is back. Of nil, no
// Redis at all, it is false.
func (r *Redis) Degraded() bool { return r != nil && r.breaker.Snapshot().State != breaker.Closed }

// Close closes the connections, for decisions to be local from now on. Of nil it does
// nothing.
func (r *Redis) Close() error {
	if r == nil {
		return nil
	}
	r.closed.Store(true)
	return r.pool.Close()
}

// take takes a token from a bucket if it has one, and says how many it holds then.
func (r *Redis) take(caller context.Context, bucket string, cfg Config) (allowed bool, tokens float64, err error) {
	err = r.breaker.Do(func(func() bool) error {
		ctx, cancel := context.WithTimeout(caller, r.cfg.Timeout)
		defer cancel()
		allowed, tokens, err = r.ask(ctx, bucket, cfg)
		switch e, ok := errors.AsType[net.Error](err); {
		case err != nil && left(caller):
			err = context.Canceled // whatever it looks like
		case err != nil && ctx.Err() != nil, ok && e.Timeout():
			err = fmt.Errorf("no answer within %v", r.cfg.Timeout)
		}
		if err != nil && !r.neutral(err) {
			r.failed.Store(&failure{time.Now(), err})
		}
		return err
	})
	return allowed, tokens, err
}

// left says whether the caller is gone, or should be: a connection may see a deadline before
// the context says so.
func left(caller context.Context) bool {
	deadline, ok := caller.Deadline()
	return caller.Err() != nil || ok && !time.Now().Before(deadline)
}

func (r *Redis) ask(ctx context.Context, bucket string, cfg Config) (allowed bool, tokens float64, err error) {
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return false, 0, err
	}
	defer func() { _ = conn.Close() }() // back to the pool, or for good if it is broken
	values, err := redis.Values(r.script.DoContext(ctx, conn, "storefront:"+bucket, cfg.Burst, cfg.Rate))
	if err != nil {
		return false, 0, err
	}
	if len(values) == 2 {
		took, err1 := redis.Int(values[0], nil)
		tokens, err2 := redis.Float64(values[1], nil)
		if err1 == nil && err2 == nil && (took == 0 || took == 1) && tokens > -1 && tokens <= float64(cfg.Burst) {
			return took == 1, tokens, nil
		}
	}
	return false, 0, errors.New("an answer that the script does not give")
}
