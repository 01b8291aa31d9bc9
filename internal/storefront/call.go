package storefront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
)

// newClient returns the client of a dependency, whose doings are logged, counted and
// told to those who watch.
func (s *service) newClient(name string, policy dependency.Policy) (*dependency.Client, error) {
	policy.Breaker.OnTransition = func(t breaker.Transition) {
		s.logTransition(name, t)
		s.metrics.Transitions.WithLabelValues(name, string(t.From), string(t.To)).Inc()
		s.events.Record("transitions of "+name, "transition", transitionEvent{t.At, name, t.From, t.To})
	}
	counted := s.metrics.Dependency(name)
	s.counted[name] = counted
	return dependency.New(dependency.Config{
		Policy: policy,
		Dial:   dial,
		OnAttempt: func(ctx context.Context, a dependency.Attempt) {
			counted.Attempts[a.Outcome].Inc() // first: a log handler may panic
			s.logAttempt(ctx, name, a)
		},
	})
}

// call is the one call of a request to a dependency. How it went is told in the headers
// of the answer, and to those who watch.
type call struct {
	*service
	dependency string
	w          http.ResponseWriter
	ctx        context.Context
	without    dependency.Without

	// How it went; the outcome is empty until it has been made.
	outcome      string
	trace        dependency.Trace
	took         time.Duration
	breaker      breaker.State // after it
	fallbackKind string
}

// calling adapts a handler that calls a dependency.
func (s *service) calling(name string, h func(http.ResponseWriter, *http.Request, *call) error) http.HandlerFunc {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		without, err := s.without(r)
		if err != nil {
			return err
		}
		c := &call{service: s, dependency: name, w: w, ctx: r.Context(), without: without}
		err = h(w, r, c)
		c.tell(err)
		return err
	})
}

// doPath makes it to a path of one of the simulators behind this service.
func (c *call) doPath(path string, req dependency.Request) ([]byte, error) {
	url, err := ownURL(c.ctx, path)
	if err != nil {
		return nil, err
	}
	return c.do(url, req)
}

// do makes it to a URL.
func (c *call) do(url string, req dependency.Request) (body []byte, err error) {
	client, start := c.dependencies[c.dependency], time.Now()
	req.URL, req.Without, req.Trace = url, c.without, &c.trace
	body, err = client.Do(c.ctx, req)
	c.took, c.breaker = time.Since(start), client.Snapshot().Breaker.State
	c.count(err)
	if c.trace.GaveUp != "" {
		c.logGiveUp(c.ctx, c.dependency, c.trace.GaveUp, err)
	}
	h := c.w.Header()
	h.Set("Storefront-Attempts", strconv.Itoa(c.trace.Attempts))
	h.Set("Storefront-Breaker", string(c.breaker))
	if len(c.trace.Steps) > 0 {
		h.Set("Server-Timing", serverTiming(c.trace.Steps))
	}
	return body, err
}

// count counts it: refused by the bulkhead, refused by the breaker, or made.
func (c *call) count(err error) {
	counted := c.counted[c.dependency]
	switch {
	case errors.Is(err, bulkhead.ErrFull):
		c.outcome = bulkheadFull
		counted.BulkheadRejected.Inc()
	case errors.Is(err, breaker.ErrOpen):
		c.outcome = circuitOpen
		counted.BreakerRejected.Inc()
	default:
		c.outcome = string(dependency.OutcomeOf(err))
		counted.Calls.Observe(c.took.Seconds())
	}
	if c.trace.GaveUp == retry.OverBudget {
		counted.BudgetRefused.Inc()
	}
}

// fallback marks an answer that stands in for the dependency's.
func (c *call) fallback(kind string) {
	c.fallbackKind = kind
	c.w.Header().Set("Storefront-Fallback", kind)
}

// serverTiming is the steps of a call as https://www.w3.org/TR/server-timing/ has
// them, in milliseconds.
func serverTiming(steps []dependency.Step) string {
	entries := make([]string, len(steps))
	for i, step := range steps {
		if step.Attempt == 0 {
			entries[i] = fmt.Sprintf("wait;dur=%.1f", milliseconds(step.Took))
		} else {
			entries[i] = fmt.Sprintf(`attempt;desc="%d: %s";dur=%.1f`, step.Attempt, step.Result, milliseconds(step.Took))
		}
	}
	return strings.Join(entries, ", ")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// maxName is how long a SKU or an id may be, in bytes; a longer one is unknown.
const maxName = 64

// answered says whether err is an answer with this status.
func answered(err error, status int) bool {
	var e *dependency.Error
	return errors.As(err, &e) && e.Status == status
}

// explain says what failed in front of why, and how long an open breaker stays
// open.
func explain(what string, err error) error {
	var open *breaker.OpenError
	switch {
	case errors.As(err, &open):
		return retryIn(open.RetryAfter(), err)
	case errors.Is(err, dependency.ErrFailed), errors.Is(err, dependency.ErrDeadline):
		return fmt.Errorf("%s: %w", what, err)
	default:
		return err
	}
}

// errUnexpected is about JSON that is not what the route has.
var errUnexpected = errors.New("the response is not what was asked for")

// decode reads an answer into v, and checks with complete that nothing was
// missing.
func decode(body []byte, v any, complete func() bool) error {
	if json.Unmarshal(body, v) != nil || !complete() {
		return errUnexpected
	}
	return nil
}
