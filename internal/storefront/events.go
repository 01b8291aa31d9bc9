package storefront

import (
	"time"

	"github.com/go-chi/chi/v5"

	"example.com/storefront/internal/breaker"
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
	Outcome    string        `json:"outcome"` // the last attempt's, bulkhead_full or circuit_open
	Fallback   string        `json:"fallback,omitempty"`
	Attempts   int           `json:"attempts"`
	Breaker    breaker.State `json:"breaker"` // after it
	Took       float64       `json:"took_ms"` // the wait for a permit included
	Steps      []stepEvent   `json:"steps"`
}

// stepEvent is an attempt or, without a number, a wait for the next one.
type stepEvent struct {
	Attempt int     `json:"attempt,omitempty"`
	Result  string  `json:"result,omitempty"`
	Took    float64 `json:"took_ms"`
}

// tell passes on the call, once the handler knows its answer.
func (c *call) tell() {
	if c.outcome == "" || !c.events.HasSubscribers() { // for nobody nothing need be made
		return
	}
	e := callEvent{
		At: time.Now(), Route: chi.RouteContext(c.ctx).RoutePattern(), Dependency: c.dependency,
		Outcome: c.outcome, Fallback: c.fallbackKind,
		Attempts: c.trace.Attempts, Breaker: c.breaker,
		Took: milliseconds(c.took), Steps: []stepEvent{},
	}
	for _, step := range c.trace.Steps {
		e.Steps = append(e.Steps, stepEvent{step.Attempt, step.Result, milliseconds(step.Took)})
	}
	c.events.Publish("call", e)
}

// decisionEvent says whether a request may pass. By is who decided, as /status names it;
// of in_flight and streams only refusals are told.
type decisionEvent struct {
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Decision string    `json:"decision"` // allowed, rejected or overflow
}

func (s *service) tellDecision(by, decision string) {
	if s.events.HasSubscribers() {
		s.events.Publish("decision", decisionEvent{time.Now(), by, decision})
	}
}
