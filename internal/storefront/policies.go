package storefront

import (
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
)

// The dependencies.
const (
	flaky     = "flaky"
	inventory = "inventory"
	payments  = "payments"
	profiles  = "profiles"
)

// policies is how each dependency is called; no other place says so. The flags
// change the row flaky.
var policies = map[string]dependency.Policy{
	// No fallback: 503 with Retry-After.
	flaky: {
		Bulkhead: bulkhead.Config{Permits: 20},
		Breaker:  breaker.Config{Failures: 3, Cooldown: 10 * time.Second, Probes: 1},
		Retry:    backoff(4),
		Timeout:  800 * time.Millisecond,
		Deadline: 5 * time.Second,
	},
	// Fallback: stock null. A shop page must not wait for it, so it is called
	// once and briefly, and judged by its share of failures.
	inventory: {
		Bulkhead: bulkhead.Config{Permits: 20},
		Breaker: breaker.Config{FailureRatio: 0.5, MinCalls: 20, Window: 10 * time.Second,
			Cooldown: 5 * time.Second, Jitter: 0.1, Probes: 3},
		Retry:    backoff(1),
		Timeout:  300 * time.Millisecond,
		Deadline: 300 * time.Millisecond,
	},
	// No fallback: nothing stands in for a charge. Retried only with a key.
	payments: {
		Bulkhead: bulkhead.Config{Permits: 100},
		Breaker:  breaker.Config{Failures: 3, Cooldown: 60 * time.Second, Probes: 1},
		Retry:    backoff(4),
		Timeout:  800 * time.Millisecond,
		Deadline: 5 * time.Second,
	},
	// Fallback: the last good copy, marked stale.
	profiles: {
		Bulkhead: bulkhead.Config{Permits: 20},
		Breaker:  breaker.Config{Failures: 3, Window: 10 * time.Second, Cooldown: 30 * time.Second, Probes: 3},
		Retry:    backoff(2),
		Timeout:  500 * time.Millisecond,
		Deadline: 2 * time.Second,
	},
}

// backoff is the same for all but in the number of attempts.
func backoff(attempts int) retry.Config {
	return retry.Config{Attempts: attempts, Base: 100 * time.Millisecond, Cap: 2 * time.Second, BudgetShare: 0.2, BudgetFloor: 50}
}

// maxRetryAfter is the most that /checkout tells a caller whom the open breaker
// refused: a workshop does not wait longer before it asks again.
const maxRetryAfter = 5 * time.Second
