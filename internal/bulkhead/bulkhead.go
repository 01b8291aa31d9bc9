// Package bulkhead bounds how many calls to one dependency run at once, so that
// a slow dependency can use up its own permits and nothing else.
//
// The name is Michael Nygard's ("Release It!"): a hole floods one compartment,
// not the ship.
package bulkhead

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// ErrFull is returned, at once, when every permit is taken.
var ErrFull = errors.New("bulkhead full")

// Config sizes a bulkhead.
type Config struct {
	// Permits is how many calls may run at once. 0 means 20.
	Permits int
}

// Bulkhead holds the permits. It is safe for concurrent use.
type Bulkhead struct {
	permits  int
	sem      *semaphore.Weighted
	inUse    atomic.Int64
	rejected atomic.Uint64
}

// New returns a Bulkhead with all its permits free, or an error that names the
// field it cannot work with.
func New(cfg Config) (*Bulkhead, error) {
	if cfg.Permits < 0 {
		return nil, fmt.Errorf("bulkhead: Permits is %d, must not be negative", cfg.Permits)
	}
	if cfg.Permits == 0 {
		cfg.Permits = 20
	}
	return &Bulkhead{permits: cfg.Permits, sem: semaphore.NewWeighted(int64(cfg.Permits))}, nil
}

// Do runs fn under a permit and returns its error, or ErrFull without running
// it. The permit is given back once, however fn ends: result, error or panic.
func (b *Bulkhead) Do(fn func() error) error {
	if !b.sem.TryAcquire(1) {
		b.rejected.Add(1)
		return ErrFull
	}
	b.inUse.Add(1)
	defer func() {
		b.inUse.Add(-1)
		b.sem.Release(1)
	}()
	return fn()
}

// Snapshot is a bulkhead at one moment. Taking it changes nothing.
type Snapshot struct {
	Permits  int    // how many calls may run at once
	InUse    int    // how many do
	Rejected uint64 // calls refused since the start
}

// Snapshot reports the permits and the refusals.
func (b *Bulkhead) Snapshot() Snapshot {
	return Snapshot{Permits: b.permits, InUse: int(b.inUse.Load()), Rejected: b.rejected.Load()}
}
