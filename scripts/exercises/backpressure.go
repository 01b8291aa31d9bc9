package exercises

import (
	"context"

	"example.com/storefront/internal/queue"
)

// Produce sends the events 1 to n, each of which counts, and returns how many were
// accepted: all of them, or those before ctx ended or q was closed.
//
// As it stands it drops what finds no room.
func Produce(ctx context.Context, q *queue.Queue[int], n int) (accepted int) {
	for event := 1; event <= n; event++ {
		if q.TrySend(event) == nil {
			accepted++
		}
	}
	return accepted
}
