package exercises

import (
	"context"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/retry"
)

// Call makes a call through a breaker and a retry. An attempt that fails is repeated.
// When calls fail, nobody calls for a while: no new call begins, and one that waits
// to try again does not. It ends at once when ctx ends.
//
// As it stands, one call can open the breaker under its own feet.
func Call(ctx context.Context, b *breaker.Breaker, r *retry.Retrier, attempt func(context.Context) error) error {
	return r.Do(ctx, retry.Call{}, func(ctx context.Context) error {
		return b.Do(func(func() bool) error {
			return attempt(ctx)
		})
	})
}
