// Package bulkhead bounds how many calls to one dependency run at once, so that
// a slow dependency can use up its own permits and nothing else.
//
// The name is Michael Nygard's ("Release It!"): a hole floods one compartment,
// not the ship.
package bulkhead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrFull is returned when every permit is taken: at once or, with a wait
// configured, when the wait ends.
var ErrFull = errors.New("bulkhead full")

// Config sizes a bulkhead.
type Config struct {
	// Permits is how many calls may run at once. 0 means 20.
	Permits int
	// MaxWait is how long a call may wait for a permit, in the order of
	// arrival. 0 means not at all.
	MaxWait time.Duration
}

// Bulkhead holds the permits. It is safe for concurrent use. Do of a nil one has no
// bound; it has no other method.
type Bulkhead struct {
	cfg      Config
	sem      *semaphore.Weighted
	inUse    atomic.Int64
	waiting  atomic.Int64
	rejected atomic.Uint64
}

// New returns a Bulkhead with all its permits free, or an error that names the
// field it cannot work with.
func New(cfg Config) (*Bulkhead, error) {
	switch {
	case cfg.Permits < 0:
		return nil, fmt.Errorf("bulkhead: Permits is %d, must not be negative", cfg.Permits)
	case cfg.MaxWait < 0:
		return nil, fmt.Errorf("bulkhead: MaxWait is %v, must not be negative", cfg.MaxWait)
	}
	cfg.Permits = cmp.Or(cfg.Permits, 20)
	return &Bulkhead{cfg: cfg, sem: semaphore.NewWeighted(int64(cfg.Permits))}, nil
}

// Do runs fn under a permit and returns its error. Without running it, it returns
// ErrFull, or ctx.Err() if ctx ends before there is a permit. The permit is given back
// once, however fn ends: result, error or panic.
func (b *Bulkhead) Do(ctx context.Context, fn func() error) error {
	if b == nil {
		return fn()
	}
	if err := b.acquire(ctx); err != nil {
		return err
	}
	b.inUse.Add(1)
	defer func() {
		b.inUse.Add(-1)
		b.sem.Release(1)
	}()
	return fn()
}

func (b *Bulkhead) acquire(ctx context.Context) error {
	if b.sem.TryAcquire(1) {
		return nil
	}
	if b.cfg.MaxWait > 0 {
		b.waiting.Add(1)
		defer b.waiting.Add(-1)
		wait, cancel := context.WithTimeout(ctx, b.cfg.MaxWait)
		defer cancel()
		if b.sem.Acquire(wait, 1) == nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.rejected.Add(1)
	return ErrFull
}

// Reset forgets the calls refused. Those under way keep their permits.
func (b *Bulkhead) Reset() { b.rejected.Store(0) }

// Snapshot is a bulkhead at one moment. Taking it changes nothing.
type Snapshot struct {
	Permits  int    `json:"permits"`  // how many calls may run at once
	InUse    int    `json:"in_use"`   // how many do
	Waiting  int    `json:"waiting"`  // how many wait for a permit
	Rejected uint64 `json:"rejected"` // calls refused since the start or Reset
}

// Snapshot reports the permits and the refusals.
func (b *Bulkhead) Snapshot() Snapshot {
	return Snapshot{
		Permits:  b.cfg.Permits,
		InUse:    int(b.inUse.Load()),
		Waiting:  int(b.waiting.Load()),
		Rejected: b.rejected.Load(),
	}
}
