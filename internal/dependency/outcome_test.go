package dependency

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/storefront/internal/retry"
)

// What each error means to the breaker and to the retry.
func TestOutcomes(t *testing.T) {
	status := func(code int, o Outcome) error { return &Error{Status: code, Outcome: o, Err: errors.New("x")} }
	for _, tt := range []struct {
		err                         error
		outcome                     Outcome
		transient, healthy, neutral bool
	}{
		{nil, OK, false, false, false},
		{status(404, Status4xx), Status4xx, false, true, false},
		{status(429, Status4xx), Status4xx, true, true, false},
		{status(500, Status5xx), Status5xx, false, false, false},
		{status(502, Status5xx), Status5xx, true, false, false},
		{status(503, Status5xx), Status5xx, true, false, false},
		{status(504, Status5xx), Status5xx, true, false, false},
		{status(200, Undecodable), Undecodable, false, false, false},
		{status(0, Timeout), Timeout, true, false, false},
		{status(0, Connection), Connection, true, false, false},
		{&Error{Outcome: Connection, Err: context.DeadlineExceeded}, Connection, true, false, false}, // of the dialer
		{fmt.Errorf("%w after 5s", ErrDeadline), Timeout, false, false, false},
		{context.Canceled, Cancelled, false, false, true},
		{context.DeadlineExceeded, Cancelled, false, false, true}, // the caller's own
		{fmt.Errorf("%w; last error: %w", context.Canceled, status(429, Status4xx)), Cancelled, false, false, true},
		{fmt.Errorf("%w; last error: %w", ErrDeadline, status(429, Status4xx)), Timeout, false, false, false},
	} {
		if got := OutcomeOf(tt.err); got != tt.outcome {
			t.Errorf("%v: outcome %v, want %v", tt.err, got, tt.outcome)
		}
		if got := transient(tt.err); got != tt.transient {
			t.Errorf("%v: transient %v, want %v", tt.err, got, tt.transient)
		}
		if got := healthy(tt.err); got != tt.healthy {
			t.Errorf("%v: healthy %v, want %v", tt.err, got, tt.healthy)
		}
		if got := neutral(tt.err); got != tt.neutral {
			t.Errorf("%v: neutral %v, want %v", tt.err, got, tt.neutral)
		}
	}
}

func TestNewNamesWhatItCannotWorkWith(t *testing.T) {
	good := Policy{Timeout: time.Second, Deadline: time.Second}
	if _, err := New(Config{Policy: good}); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Policy){
		"dependency: Timeout is 0s, must be positive":     func(p *Policy) { p.Timeout = 0 },
		"dependency: Deadline is -1ns, must be positive":  func(p *Policy) { p.Deadline = -1 },
		"retry: Attempts is -1, must not be negative":     func(p *Policy) { p.Retry = retry.Config{Attempts: -1} },
		"bulkhead: Permits is -1, must not be negative":   func(p *Policy) { p.Bulkhead.Permits = -1 },
		"breaker: Cooldown is -1ns, must not be negative": func(p *Policy) { p.Breaker.Cooldown = -1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := New(Config{Policy: bad}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
