// Package peers measures the patterns of this project beside others' and beside what can be
// written by hand.
package peers

import (
	"errors"
	"sync/atomic"
	"time"
)

// errOpen refuses a call.
var errOpen = errors.New("circuit open")

// atomicBreaker is as little of a circuit breaker as there can be: some failures in a row
// open it, and after a cool-down one probe closes or reopens it. It holds no lock. What it
// leaves out is what one pays for in the others: results from before a change of state count,
// so a slow success closes it, and a slow failure opens it, whatever has happened meanwhile;
// it has one rule, tells nobody of its changes, and a probe that panics leaves it half-open
// for ever.
type atomicBreaker struct {
	failures int64
	cooldown time.Duration

	state  atomic.Int32
	inARow atomic.Int64
	until  atomic.Int64 // the end of the cool-down, in nanoseconds since begin
}

const (
	closed int32 = iota
	open
	halfOpen
)

// begin is where until counts from, so that the clock that it goes by never steps back.
var begin = time.Now()

// do runs fn and returns its error, or errOpen without running it.
func (b *atomicBreaker) do(fn func() error) error {
	switch b.state.Load() {
	case open:
		// The swap claims the probe: of those who come together, one makes it.
		if int64(time.Since(begin)) <= b.until.Load() || !b.state.CompareAndSwap(open, halfOpen) {
			return errOpen
		}
	case halfOpen:
		return errOpen
	}
	err := fn()
	if err == nil {
		if b.inARow.Load() != 0 { // or all who succeed would write to one cache line
			b.inARow.Store(0)
		}
		b.state.CompareAndSwap(halfOpen, closed)
		return nil
	}
	if n := b.inARow.Add(1); n >= b.failures || b.state.Load() == halfOpen {
		b.until.Store(int64(time.Since(begin) + b.cooldown))
		b.state.Store(open)
	}
	return err
}
