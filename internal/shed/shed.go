// Package shed refuses incoming work that there is no room for, at once, while
// a refusal is still cheap and the caller still has time to go elsewhere.
//
// A bulkhead bounds the calls that go out to a dependency; shedding bounds the
// work that comes in. See "Addressing Cascading Failures" in Google's "Site
// Reliability Engineering" (2016).
package shed

import (
	"errors"
	"fmt"
	"sync"
)

// ErrBusy is returned, at once, when every permit is taken.
var ErrBusy = errors.New("busy")

// Config sizes a Shedder.
type Config struct {
	// Permits is how much work may be under way at once. 0 means 2.
	Permits int
}

// Shedder admits work. It is safe for concurrent use.
type Shedder struct {
	permits int

	mu       sync.Mutex
	inUse    int    // guarded by mu
	rejected uint64 // guarded by mu
}

// New returns a Shedder with all its permits free, or an error that names the
// field it cannot work with.
func New(cfg Config) (*Shedder, error) {
	if cfg.Permits < 0 {
		return nil, fmt.Errorf("shed: Permits is %d, must not be negative", cfg.Permits)
	}
	if cfg.Permits == 0 {
		cfg.Permits = 2
	}
	return &Shedder{permits: cfg.Permits}, nil
}

// Do runs fn under a permit and returns its error, or ErrBusy without running it:
// the newest work is what is shed. The permit is given back once, however fn ends:
// result, error or panic.
func (s *Shedder) Do(fn func() error) error {
	if !s.acquire() {
		return ErrBusy
	}
	defer s.release()
	return fn()
}

func (s *Shedder) acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse == s.permits {
		s.rejected++
		return false
	}
	s.inUse++
	return true
}

func (s *Shedder) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse--
}

// Snapshot is a shedder at one moment. Taking it changes nothing.
type Snapshot struct {
	Permits  int    // how much work may be under way at once
	InUse    int    // how much is
	Rejected uint64 // work refused since the start
}

// Snapshot reports the permits and the refusals.
func (s *Shedder) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{Permits: s.permits, InUse: s.inUse, Rejected: s.rejected}
}
