package dependency

import (
	"context"
	"errors"
	"net/http"
	"time"

	"example.com/storefront/internal/retry"
)

var (
	// ErrFailed is what every *Error is: errors.Is(err, ErrFailed).
	ErrFailed = errors.New("call failed")
	// ErrTimeout ended an attempt that may be repeated.
	ErrTimeout = errors.New("attempt timed out")
	// ErrDeadline ended a call for good, during an attempt.
	ErrDeadline = retry.ErrDeadline
	// ErrOutcomeUnknown is a failed call that may have taken effect all the
	// same: an attempt at it was sent, and no usable answer came back.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// errRequest is a request that cannot be made: nobody's fault but ours.
var errRequest = errors.New("bad request")

// Outcome says how an attempt ended.
type Outcome string

// The outcomes, as logs, metrics and events spell them.
const (
	OK          Outcome = "ok"
	Status4xx   Outcome = "status_4xx"
	Status5xx   Outcome = "status_5xx"
	Timeout     Outcome = "timeout"     // ours: the attempt's, or the total deadline
	Connection  Outcome = "connection"  // no whole answer came
	Undecodable Outcome = "undecodable" // an answer came, and was no use
	Cancelled   Outcome = "cancelled"   // the caller went away
)

// Outcomes has all of them.
var Outcomes = []Outcome{OK, Status4xx, Status5xx, Timeout, Connection, Undecodable, Cancelled}

// Error is a failed attempt. Its text is the reason alone.
//
// It does not unwrap: Err may be a dial timeout, which is a
// context.DeadlineExceeded that must not pass for the caller's.
type Error struct {
	Outcome Outcome
	Status  int   // of an answer other than 2xx, else 0
	Err     error // the reason
	// retryAfter is how long the dependency asked to be left alone.
	retryAfter time.Duration
}

// Error is the text of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Is reports that this is ErrFailed, and whether it is ErrTimeout.
func (e *Error) Is(target error) bool {
	return target == ErrFailed || target == ErrTimeout && e.Outcome == Timeout
}

// RetryAfter is how long the dependency asked to be left alone, 0 if it did not.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

// statusOf is the status of the answer that err is, 0 if it is none.
func statusOf(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// OutcomeOf classifies the error of an attempt or, for a call, of its last one.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OK // before e, which errors.As moves to the heap
	}
	var e *Error
	switch {
	// The error of a call that was ended also names the last one before it,
	// which no longer counts.
	case neutral(err):
		return Cancelled
	case errors.Is(err, ErrDeadline):
		return Timeout
	case errors.As(err, &e):
		return e.Outcome
	default:
		return Connection
	}
}

// neutral: a caller that went away says nothing about the dependency. Our own
// timeouts are ErrTimeout and ErrDeadline, which match neither of these.
func neutral(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errRequest)
}

// healthy: whoever answers 4xx has understood the request. That includes 429,
// although it is retried.
func healthy(err error) bool {
	return OutcomeOf(err) == Status4xx
}

// transient says whether another attempt may help.
func transient(err error) bool {
	var e *Error
	if neutral(err) || errors.Is(err, ErrDeadline) || !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.Outcome == Timeout || e.Outcome == Connection
}
