package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func queue(t *testing.T, capacity int) *Queue[int] {
	t.Helper()
	q, err := New[int](capacity)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func rest(q *Queue[int]) (values []int) {
	for {
		v, ok := q.Receive()
		if !ok {
			return values
		}
		values = append(values, v)
	}
}

func TestTrySendAnswersAtOnce(t *testing.T) {
	q := queue(t, 2)
	for i, want := range []error{nil, nil, ErrFull, ErrFull} {
		if err := q.TrySend(i + 1); err != want {
			t.Errorf("value %d: %v, want %v", i+1, err, want)
		}
	}
	q.Close()
	q.Close()
	if err := q.TrySend(5); err != ErrClosed {
		t.Errorf("after Close: %v, want %v", err, ErrClosed)
	}
	if got := rest(q); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("received %v, want [1 2]", got)
	}
}

func TestSendWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, 1)
		q.TrySend(1)
		time.AfterFunc(time.Second, func() { q.Receive() })
		start := time.Now()
		if err := q.Send(t.Context(), 2); err != nil || time.Since(start) != time.Second {
			t.Errorf("Send = %v after %v, want nil after 1s", err, time.Since(start))
		}
	})
}

func TestSendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, 1)
		q.TrySend(1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := q.Send(ctx, 2); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
			t.Errorf("Send = %v after %v, want the deadline after 50ms", err, time.Since(start))
		}
		q.Receive()
		if err := q.Send(ctx, 3); !errors.Is(err, context.DeadlineExceeded) || len(q.values) != 0 {
			t.Errorf("Send = %v with a context that has ended, want nothing sent", err)
		}
	})
}

func TestCloseSendsWaitingSendersHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, 1)
		q.TrySend(1)
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() {
				if err := q.Send(context.Background(), 2); err != ErrClosed {
					t.Errorf("Send = %v, want %v", err, ErrClosed)
				}
			})
		}
		synctest.Wait()
		q.Close()
		waiting.Wait()
		if got := rest(q); !slices.Equal(got, []int{1}) {
			t.Errorf("received %v, want [1]", got)
		}
	})
}

func TestAcceptedIsReceivedWhateverTheMomentOfClosing(t *testing.T) {
	for round := range 50 {
		q := queue(t, 3)
		var accepted atomic.Int64
		var senders sync.WaitGroup
		for i := range 8 {
			senders.Go(func() {
				for {
					var err error
					if i%2 == 0 {
						err = q.TrySend(1)
					} else {
						err = q.Send(context.Background(), 1)
					}
					switch err {
					case nil:
						accepted.Add(1)
					case ErrClosed:
						return
					case ErrFull:
						runtime.Gosched()
					}
				}
			})
		}
		received := 0
		for range round * 5 {
			if _, ok := q.Receive(); ok {
				received++
			}
		}
		var closers sync.WaitGroup
		for range 2 {
			closers.Go(q.Close)
		}
		received += len(rest(q))
		closers.Wait()
		senders.Wait()
		if int64(received) != accepted.Load() {
			t.Fatalf("round %d: %d received of %d accepted", round, received, accepted.Load())
		}
	}
}

func TestNewRefusesAQueueWithoutRoom(t *testing.T) {
	for _, capacity := range []int{0, -1} {
		if _, err := New[int](capacity); err == nil {
			t.Errorf("capacity %d is accepted", capacity)
		}
	}
}
