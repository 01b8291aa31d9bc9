package dependency

import (
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/retry"
)

// Policy is how one dependency is called. The zero values of its parts are
// theirs; Timeout and Deadline have none.
type Policy struct {
	Bulkhead bulkhead.Config
	// Breaker's Healthy and Neutral are set by New.
	Breaker breaker.Config
	// Retry's Transient is set by New.
	Retry retry.Config
	// Timeout bounds one attempt, its body included. It must be positive.
	Timeout time.Duration
	// Deadline bounds the whole call: the attempts and the waits between them.
	// It must be positive.
	Deadline time.Duration
}
