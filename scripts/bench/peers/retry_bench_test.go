package peers

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"example.com/storefront/internal/inturn"
	"example.com/storefront/internal/retry"
)

// BenchmarkRetry is a call through a retry policy with a budget that succeeds at once, as most
// do. What fails waits, and costs the wait.
func BenchmarkRetry(b *testing.B) {
	ours, err := retry.New(retry.Config{})
	if err != nil {
		b.Fatal(err)
	}
	peer := failsafe.With[any](retrypolicy.NewBuilder[any]().
		WithMaxAttempts(4).WithBackoff(100*time.Millisecond, 2*time.Second).WithJitterFactor(1).
		WithBudget(budget.NewBuilder().Build()).Build())
	inturn.Time(b, 1,
		inturn.Way{Name: "ours", Call: func() error {
			return ours.Do(context.Background(), retry.Call{}, func(context.Context) error { return nil })
		}},
		inturn.Way{Name: "failsafe", Call: func() error { return peer.Run(succeed) }},
	)
}
