package exercises

import (
	"time"

	"example.com/storefront/internal/breaker"
)

// CatalogueBreakerAnswer looks at a share of the recent calls, and only when there
// are enough of them to say anything.
func CatalogueBreakerAnswer() breaker.Config {
	return breaker.Config{
		FailureRatio: 0.5,
		MinCalls:     20,
		Window:       10 * time.Second,
		Cooldown:     5 * time.Second,
	}
}
