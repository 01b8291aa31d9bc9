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
		until func(*queue.Queue[int], context.CancelFunc) // what ends it early
		want  int
	}{
		{"8 events for a queue of 2", func(*queue.Queue[int], context.CancelFunc) {}, 8},
		{"the context ends after 250ms", func(_ *queue.Queue[int], cancel context.CancelFunc) { cancel() }, 5},
		{"the queue is closed after 250ms", func(q *queue.Queue[int], _ context.CancelFunc) { q.Close() }, 5},
	} {
		q, err := queue.New[int](2)
		if err != nil {
			return err
		}
		received := make(chan int)
		go func() {
			n := 0
			for _, more := q.Receive(); more; _, more = q.Receive() {
				n++
				time.Sleep(100 * time.Millisecond)
			}
			received <- n
		}()
		synctest.Wait() // until the consumer is ready
		ctx, cancel := context.WithCancel(context.Background())
		stop := time.AfterFunc(250*time.Millisecond, func() { tt.until(q, cancel) })
		accepted := produce(ctx, q, 8)
		stop.Stop()
		cancel()
		q.Close()
		got := <-received
		if got != tt.want {
			return fmt.Errorf("%s: %d are received, want %d", tt.name, got, tt.want)
		}
		if accepted != got {
			return fmt.Errorf("%s: %d are accepted, it says, and %d received", tt.name, accepted, got)
		}
	}
	return nil
}
