package storefront

import (
	"context"
	"time"

	"github.com/go-chi/chi/v5"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/observe"
)

type transitionEvent struct {
	At         time.Time     `json:"at"`
	Dependency string        `json:"dependency"`
	From       breaker.State `json:"from"`
	To         breaker.State `json:"to"`
}

// callEvent is a call that has ended.
type callEvent struct {
	At         time.Time     `json:"at"`
	Route      string        `json:"route"`
	Dependency string        `json:"dependency"`
	Answer     string        `json:"answer"`  // what the caller got, see below
	Outcome    string        `json:"outcome"` // the last attempt's, or one of the two below
	Fallback   string        `json:"fallback,omitempty"`
	Attempts   int           `json:"attempts"`
	GaveUp     string        `json:"gave_up,omitempty"` // why there was no further attempt
	Breaker    breaker.State `json:"breaker"`           // after it
	Took       float64       `json:"took_ms"`           // the wait for a permit included
	Steps      []stepEvent   `json:"steps"`
}

// What the caller of a call got. An answer that says no is served all the same: a SKU that
// there is not, a key that was used before.
const (
	answerServed   = "served"
	answerFallback = "fallback" // what stands in for the dependency's answer
	answerRefused  = "refused"  // by the bulkhead or the breaker
	answerFailed   = "failed"
	answerNothing  = "nothing" // the caller hung up
)

// The outcomes of a call without an attempt.
const (
	bulkheadFull = "bulkhead_full"
	circuitOpen  = "circuit_open"
)

// stepEvent is an attempt or, without a number, a wait for the next one.
type stepEvent struct {
	Attempt int     `json:"attempt,omitempty"`
	Result  string  `json:"result,omitempty"`
	Took    float64 `json:"took_ms"`
}

// tell passes on the call and counts its answer, once the handler knows it.
func (c *call) tell(err error) {
	if c.outcome == "" {
		return
	}
	e := callEvent{
		At: time.Now(), Route: chi.RouteContext(c.ctx).RoutePattern(), Dependency: c.dependency,
		Answer: c.answer(err), Outcome: c.outcome, Fallback: c.fallbackKind,
		Attempts: c.trace.Attempts, GaveUp: c.trace.GaveUp, Breaker: c.breaker,
		Took: milliseconds(c.took), Steps: make([]stepEvent, 0, len(c.trace.Steps)),
	}
	for _, step := range c.trace.Steps {
		e.Steps = append(e.Steps, stepEvent{step.Attempt, step.Result, milliseconds(step.Took)})
	}
	c.events.Record("calls of "+c.dependency, "call", e)
	switch {
	case e.Answer == answerRefused && e.Outcome == bulkheadFull:
		c.timeline.Count(e.At, "bulkhead")
	case e.Answer == answerRefused:
		c.timeline.Count(e.At, "breaker")
	case e.Answer != answerNothing:
		c.timeline.Count(e.At, e.Answer)
	}
}

// answer is what the caller gets where the handler returned err.
func (c *call) answer(err error) string {
	switch {
	case c.ctx.Err() == context.Canceled:
		return answerNothing
	case c.fallbackKind != "":
		return answerFallback
	case c.outcome == bulkheadFull, c.outcome == circuitOpen:
		return answerRefused
	case err == nil, answerFor(err).status < 500:
		return answerServed
	default:
		return answerFailed
	}
}

// decisionEvent says whether a request may pass. By is who decided, as /status names it;
// of in_flight, streams and senders only refusals are told.
type decisionEvent struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Decision string    `json:"decision"` // allowed, rejected or overflow
}

// tellDecision passes on a decision, and counts who refused.
func (s *service) tellDecision(by, decision string) {
	if decision != "allowed" {
		s.timeline.Count(time.Now(), by)
	}
	if s.events.HasSubscribers() {
		s.events.Publish("decision", decisionEvent{time.Now(), by, decision})
	}
}

// timelineEvent is what the last two minutes brought: at first all of it, then the seconds
// that have changed. The counts are of answers, by name: served, fallback, failed or, of
// those refused, who did it: bulkhead, breaker, or By of a decision.
type timelineEvent struct {
	Now     time.Time        `json:"now"`
	Seconds []observe.Second `json:"seconds"`
}
