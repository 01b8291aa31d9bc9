package dependency

import (
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/retry"
)

// Policy says how one dependency is called. Zero fields of Bulkhead, Breaker and
// Retry mean their packages' defaults; Timeout and Deadline are required.
type Policy struct {
	Bulkhead bulkhead.Config
	// Breaker's Healthy and Neutral are set by New.
	Breaker breaker.Config
	// Retry's Transient is set by New.
	Retry retry.Config
	// Timeout bounds one attempt, its body included.
	Timeout time.Duration
	// Deadline bounds the whole call once it has its permit: the attempts and
	// the waits between them.
	Deadline time.Duration
}
