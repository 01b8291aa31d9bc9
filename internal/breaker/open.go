package breaker

import (
	"errors"
	"time"
)

// ErrOpen is what every refusal is: errors.Is(err, ErrOpen).
var ErrOpen = errors.New("circuit open")

// OpenError refuses a call: the breaker is open, or half-open with its probes
// taken.
type OpenError struct {
	until time.Time // the end of the cool-down; already past in half-open
}

// Error is the text of ErrOpen; the remaining time is for RetryAfter.
func (*OpenError) Error() string { return ErrOpen.Error() }

// Unwrap returns ErrOpen.
func (*OpenError) Unwrap() error { return ErrOpen }

// RetryAfter is what is left of the cool-down as of now, never negative. In
// half-open it is 0: when the probes end is unknown, so choose a wait of your own.
func (e *OpenError) RetryAfter() time.Duration {
	return max(0, time.Until(e.until))
}
