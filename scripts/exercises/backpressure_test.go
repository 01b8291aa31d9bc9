package exercises

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/queue"
)

func checkProduce(produce func(context.Context, *queue.Queue[int], int) int) error {
	for _, tt := range []struct {
		name  string
		work  time.Duration
		until func(*queue.Queue[int], context.CancelFunc) // what ends it early
		want  int
	}{
		{"8 events for a queue of 2", time.Minute, func(*queue.Queue[int], context.CancelFunc) {}, 8},
		{"the context ends after 250ms", 100 * time.Millisecond, func(_ *queue.Queue[int], cancel context.CancelFunc) { cancel() }, 5},
		{"the queue is closed after 250ms", 100 * time.Millisecond, func(q *queue.Queue[int], _ context.CancelFunc) { q.Close() }, 5},
	} {
		q, err := queue.New[int](2)
		if err != nil {
			return err
		}
		received := make(chan []int, 1)
		go func() {
			var all []int
			for event, more := q.Receive(); more; event, more = q.Receive() {
				all = append(all, event)
				time.Sleep(tt.work)
			}
			received <- all
		}()
		synctest.Wait() // until the consumer is ready
		ctx, cancel := context.WithCancel(context.Background())
		stop := time.AfterFunc(250*time.Millisecond, func() { tt.until(q, cancel) })
		accepted := produce(ctx, q, 8)
		stop.Stop()
		cancel()
		q.Close()
		events := <-received
		got := len(events)
		if got != tt.want {
			return fmt.Errorf("%s: %d are received, want %d", tt.name, got, tt.want)
		}
		if accepted != got {
			return fmt.Errorf("%s: %d are accepted, it says, and %d received", tt.name, accepted, got)
		}
		for i, event := range events {
			if event != i+1 {
				return fmt.Errorf("%s: received are %v, want 1 to %d in their order", tt.name, events, tt.want)
			}
		}
	}
	return nil
}
