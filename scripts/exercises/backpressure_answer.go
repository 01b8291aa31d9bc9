package exercises

import (
	"context"

	"example.com/storefront/internal/queue"
)

// ProduceAnswer waits for room, and stops when there will be none.
func ProduceAnswer(ctx context.Context, q *queue.Queue[int], n int) (accepted int) {
	for event := 1; event <= n; event++ {
		if q.Send(ctx, event) != nil {
			break
		}
		accepted++
	}
	return accepted
}
