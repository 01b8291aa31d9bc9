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
	until time.Time // the end of the cool-down; passed when the probes are taken
}

// Error is the text of ErrOpen; the remaining time is for RetryAfter.
func (*OpenError) Error() string { return ErrOpen.Error() }

// Unwrap returns ErrOpen.
func (*OpenError) Unwrap() error { return ErrOpen }

// RetryAfter is the time left until the next probe, as of now, never negative.
// It is 0 when the probes are taken, as nobody knows when they will end: tell
// callers a time of your own then.
func (e *OpenError) RetryAfter() time.Duration {
	return max(0, time.Until(e.until))
}
