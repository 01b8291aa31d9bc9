package storefront

import (
	"errors"
	"time"

	"github.com/go-chi/chi/v5"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
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
	Took       float64       `json:"took_ms"`
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
	if !c.made || !c.events.HasSubscribers() {
		return
	}
	e := callEvent{
		At: time.Now(), Route: chi.RouteContext(c.ctx).RoutePattern(), Dependency: c.dependency,
		Outcome: outcome(c.err), Fallback: c.w.Header().Get("Storefront-Fallback"),
		Attempts: c.trace.Attempts, Breaker: breaker.State(c.w.Header().Get("Storefront-Breaker")),
		Took: milliseconds(c.took), Steps: []stepEvent{},
	}
	for _, step := range c.trace.Steps {
		e.Steps = append(e.Steps, stepEvent{step.Attempt, step.Result, milliseconds(step.Took)})
	}
	c.events.Publish("call", e)
}

func outcome(err error) string {
	switch {
	case errors.Is(err, bulkhead.ErrFull):
		return "bulkhead_full"
	case errors.Is(err, breaker.ErrOpen):
		return "circuit_open"
	default:
		return string(dependency.OutcomeOf(err))
	}
}

// decisionEvent is whether a request may pass, by what /status calls by that name. Of
// in_flight and streams only the refusals are told.
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
