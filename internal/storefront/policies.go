package storefront

import (
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
)

// maxRetryAfter is the most that /checkout tells a caller whom the open breaker
// refused: a workshop does not wait longer before it asks again.
const maxRetryAfter = 5 * time.Second

// policies is how each dependency is called; no other place says so.
var policies = map[string]dependency.Policy{
	"flaky": {
		Bulkhead: bulkhead.Config{Permits: 20},
		Breaker:  breaker.Config{Failures: 3, Cooldown: 10 * time.Second, Probes: 1},
		Retry:    retry.Config{Attempts: 4, Base: 100 * time.Millisecond, Cap: 2 * time.Second},
		Timeout:  800 * time.Millisecond,
		Deadline: 5 * time.Second,
	},
}
