// Package dependency calls one dependency over HTTP through four layers:
// bulkhead, breaker, retry, timeout, in that order from the outside in.
package dependency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/retry"
)

// Config describes a dependency.
type Config struct {
	Policy Policy
	// Dial opens the connections. Its ctx has the values of the attempt's, and
	// ends after twice Policy.Timeout at most, or twice Policy.Deadline in a call
	// without the timeout. nil means a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnAttempt is told each attempt when it has ended.
	OnAttempt func(context.Context, Attempt)
}

// Client calls one dependency. It is safe for concurrent use.
type Client struct {
	policy    Policy
	bulkhead  *bulkhead.Bulkhead
	breaker   *breaker.Breaker
	retry     *retry.Retrier
	transport *http.Transport
	onAttempt func(context.Context, Attempt)

	// What the ends of time are called, made once.
	errTimeout, errDeadline error
}

// New returns a Client, or an error that names the field it cannot work with.
func New(cfg Config) (*Client, error) {
	p := cfg.Policy
	if p.Timeout <= 0 {
		return nil, fmt.Errorf("dependency: Timeout is %v, must be positive", p.Timeout)
	}
	if p.Deadline <= 0 {
		return nil, fmt.Errorf("dependency: Deadline is %v, must be positive", p.Deadline)
	}
	p.Breaker.Healthy, p.Breaker.Neutral = healthy, neutral
	p.Retry.Transient = transient

	bh, err1 := bulkhead.New(p.Bulkhead)
	br, err2 := breaker.New(p.Breaker)
	rt, err3 := retry.New(p.Retry)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if cfg.OnAttempt == nil {
		cfg.OnAttempt = func(context.Context, Attempt) {}
	}
	return &Client{
		policy:      p,
		bulkhead:    bh,
		breaker:     br,
		retry:       rt,
		transport:   newTransport(bh.Snapshot().Permits, p, cfg.Dial),
		onAttempt:   cfg.OnAttempt,
		errTimeout:  fmt.Errorf("%w after %v", ErrTimeout, p.Timeout),
		errDeadline: fmt.Errorf("%w after %v", ErrDeadline, p.Deadline),
	}, nil
}

// Do makes a call and returns the body of the answer, which is JSON. This is the
// nesting to read:
//
//   - the bulkhead is outermost, so a call holds one permit from its first
//     attempt to its last, the waits between them included;
//   - the breaker is outside the retry, so it counts calls, not attempts, and an
//     open one costs no attempt and no wait; opened ends the retries of a call
//     under way once it has opened for others;
//   - the timeout is innermost, so each attempt has its own.
//
// The error is bulkhead.ErrFull, a *breaker.OpenError, one that is ErrDeadline,
// one that is caller.Err() when the caller went away, an *Error, or another one for
// a request that cannot be made. ErrDeadline, caller.Err() and *Error are also
// ErrOutcomeUnknown where the request may have taken effect.
func (c *Client) Do(caller context.Context, req Request) (body []byte, err error) {
	unknown := false
	layers := c.layersWithout(req.Without)
	if req.Without.Timeout {
		caller = context.WithValue(caller, withoutTimeout{}, true)
	}
	err = layers.bulkhead.Do(caller, func() error {
		// Only now, as a wait for a permit is not the dependency's fault.
		deadline := time.Now().Add(c.policy.Deadline)
		return layers.breaker.Do(func(opened func() bool) error {
			call := retry.Call{Deadline: deadline, Stop: req.stop(opened), Waited: req.Trace.waited, GaveUp: req.Trace.gaveUp}
			return layers.retry.Do(caller, call, func(ctx context.Context) (err error) {
				ctx, cancel := withTimeout(ctx, layers.timeout, deadline)
				defer cancel()

				body, err = c.attempt(ctx, req, &unknown)
				return err
			})
		})
	})
	if err != nil && unknown {
		return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return body, err
}

// What can end an attempt's context, besides the caller. A caller may be ended by
// any error, even by one of another call here, so these are never returned.
var errByTimeout, errByDeadline = errors.New("by timeout"), errors.New("by deadline")

// withTimeout gives an attempt the smaller of its own timeout and what is left of
// the call's time.
func withTimeout(ctx context.Context, timeout time.Duration, deadline time.Time) (context.Context, context.CancelFunc) {
	if end := time.Now().Add(timeout); end.Before(deadline) {
		return context.WithDeadlineCause(ctx, end, errByTimeout)
	}
	return context.WithDeadlineCause(ctx, deadline, errByDeadline)
}

// Snapshot is a client's layers at one moment. Taking it changes nothing.
type Snapshot struct {
	Bulkhead bulkhead.Snapshot `json:"bulkhead"`
	Breaker  breaker.Snapshot  `json:"breaker"`
	Retry    retry.Snapshot    `json:"retry"`
}

// Snapshot reports the layers.
func (c *Client) Snapshot() Snapshot {
	return Snapshot{Bulkhead: c.bulkhead.Snapshot(), Breaker: c.breaker.Snapshot(), Retry: c.retry.Snapshot()}
}

// Reset makes the layers as they were at the start. Calls under way go on and keep
// their permits; their results count no more.
func (c *Client) Reset() {
	c.bulkhead.Reset()
	c.breaker.Reset()
	c.retry.Reset()
}

// newTransport is tuned for at most permits calls at once to one host.
func newTransport(permits int, p Policy, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	// A dial may take longer than an attempt, which should end by its own timeout
	// and not by this one.
	timed, untimed := 2*min(p.Timeout, p.Deadline, math.MaxInt64/2), 2*min(p.Deadline, math.MaxInt64/2)
	return &http.Transport{
		// net/http goes on dialing after the attempt has ended, for as long as
		// the dialer likes.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			limit := timed
			if ctx.Value(withoutTimeout{}) != nil {
				limit = untimed
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return dial(ctx, network, address)
		},
		TLSHandshakeTimeout: untimed, // there is one for both kinds of call
		// net/http keeps 2 idle connections a host by default: every call
		// beyond two at once would open one and close it again.
		MaxIdleConnsPerHost: permits,
		// Shorter than a server waits, so that we do not send into a connection
		// that is being closed.
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // a few bytes of JSON
		// No Proxy: a dependency is called directly.
	}
}
