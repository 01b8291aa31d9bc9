// Package queue is a bounded queue between producers and consumers: when it is
// full its producers are told so, or wait. That is backpressure.
//
// It is a channel that can be closed while others send. A plain channel cannot:
// a send on a closed one panics.
package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Why a value was not accepted.
var (
	ErrFull   = errors.New("queue full")
	ErrClosed = errors.New("queue closed")
)

// Queue holds values from acceptance until they are received, in order. It is
// safe for concurrent use.
type Queue[T any] struct {
	values  chan T
	closing chan struct{}
	once    sync.Once
	senders sync.RWMutex // held for reading by a sender, so values is not closed under it
}

// New returns an empty queue for capacity values, at least 1.
func New[T any](capacity int) (*Queue[T], error) {
	if capacity < 1 {
		return nil, fmt.Errorf("queue: capacity is %d, must be at least 1", capacity)
	}
	return &Queue[T]{values: make(chan T, capacity), closing: make(chan struct{})}, nil
}

// TrySend accepts v, or returns ErrFull or ErrClosed at once.
func (q *Queue[T]) TrySend(v T) error {
	q.senders.RLock()
	defer q.senders.RUnlock()
	if q.isClosing() {
		return ErrClosed
	}
	select {
	case q.values <- v:
		return nil
	default:
		return ErrFull
	}
}

// Send waits for room and accepts v. It returns ErrClosed once the queue is
// closed, also while it waits, and context.Cause(ctx) when ctx ends first.
func (q *Queue[T]) Send(ctx context.Context, v T) error {
	q.senders.RLock()
	defer q.senders.RUnlock()
	if q.isClosing() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case q.values <- v:
		return nil
	case <-q.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Receive waits for the next value. It reports false once the queue is closed
// and everything that was accepted has been received.
func (q *Queue[T]) Receive() (T, bool) {
	v, ok := <-q.values
	return v, ok
}

// Close ends sending: waiting senders get ErrClosed. What was accepted can
// still be received. Closing twice is the same as once.
func (q *Queue[T]) Close() {
	q.once.Do(func() {
		close(q.closing) // wakes the waiting senders …
		q.senders.Lock() // … so this cannot wait for room
		defer q.senders.Unlock()
		close(q.values)
	})
}

func (q *Queue[T]) isClosing() bool {
	select {
	case <-q.closing:
		return true
	default:
		return false
	}
}
