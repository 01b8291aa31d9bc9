package exercises

import (
	"context"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/retry"
)

// CallAnswer has the breaker outside: it counts calls, and refuses one before its
// first attempt. Once it has opened for others, the retry stops.
func CallAnswer(ctx context.Context, b *breaker.Breaker, r *retry.Retrier, attempt func(context.Context) error) error {
	return b.Do(func(opened func() bool) error {
		stop := func() string {
			if opened() {
				return "the breaker has opened"
			}
			return ""
		}
		return r.Do(ctx, retry.Call{Stop: stop}, attempt)
	})
}
