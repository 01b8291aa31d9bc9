// Package shed refuses incoming work that there is no room for, while a refusal
// is still cheap and the caller still has time to go elsewhere.
//
// A bulkhead bounds the calls that go out to a dependency; shedding bounds the
// work that comes in. See "Addressing Cascading Failures" in Google's "Site
// Reliability Engineering" (2016).
package shed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrBusy is returned for work that is shed: at once where there is no room to
// wait either, else when it has waited too long or more urgent work takes its
// place.
var ErrBusy = errors.New("busy")

// Policy says which work is shed.
type Policy string

// The policies. The zero value means Newest.
const (
	Newest   Policy = "newest"   // nothing waits: what finds no permit free is shed
	Wait     Policy = "wait"     // a queue in the order of arrival; when it is full the newest is shed
	Priority Policy = "priority" // a queue in the order of urgency; when it is full the least urgent is shed, the newest of those
)

// DefaultUrgency is that of work which does not say (RFC 9218, §4.1).
const DefaultUrgency = 3

// Config sizes a Shedder.
type Config struct {
	// Permits is how much work may be under way at once. 0 means 2.
	Permits int
	// Policy says which work is shed. Empty means Newest.
	Policy Policy
	// Queue is how much work may wait. 0 means twice Permits. Newest ignores it.
	Queue int
	// MaxWait is how long work may wait; then it is shed. 0 means 5 s. Newest
	// ignores it.
	MaxWait time.Duration
}

// Shedder admits work. It is safe for concurrent use.
type Shedder struct {
	cfg Config

	mu       sync.Mutex
	inUse    int       // guarded by mu
	waiting  []*waiter // guarded by mu; in the order in which they are admitted
	rejected uint64    // guarded by mu
}

// waiter is a piece of work in the queue.
type waiter struct {
	urgency int
	verdict chan error // gets nil with a permit, or ErrBusy, once it has left the queue
}

// New returns a Shedder with all its permits free, or an error that names the
// field it cannot work with.
func New(cfg Config) (*Shedder, error) {
	switch {
	case cfg.Permits < 0:
		return nil, fmt.Errorf("shed: Permits is %d, must not be negative", cfg.Permits)
	case !slices.Contains([]Policy{"", Newest, Wait, Priority}, cfg.Policy):
		return nil, fmt.Errorf("shed: Policy is %q, must be %s, %s or %s", cfg.Policy, Newest, Wait, Priority)
	case cfg.Queue < 0:
		return nil, fmt.Errorf("shed: Queue is %d, must not be negative", cfg.Queue)
	case cfg.MaxWait < 0:
		return nil, fmt.Errorf("shed: MaxWait is %v, must not be negative", cfg.MaxWait)
	}
	cfg.Permits = cmp.Or(cfg.Permits, 2)
	cfg.Policy = cmp.Or(cfg.Policy, Newest)
	cfg.Queue = cmp.Or(cfg.Queue, 2*cfg.Permits)
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 5*time.Second)
	if cfg.Policy == Newest {
		cfg.Queue = 0
	}
	return &Shedder{cfg: cfg}, nil
}

// Do runs fn under a permit and returns its error. Without running it, it returns
// ErrBusy, or ctx.Err() if ctx ends while it waits, which frees its place
// at once. The permit is given back once, however fn ends: result, error or panic.
//
// Urgency counts under Priority only: 0 is the most urgent, as in RFC 9218.
func (s *Shedder) Do(ctx context.Context, urgency int, fn func() error) error {
	if err := s.acquire(ctx, urgency); err != nil {
		return err
	}
	defer s.release()
	return fn()
}

func (s *Shedder) acquire(ctx context.Context, urgency int) error {
	if ctx.Err() != nil {
		return ctx.Err() // who has left must not take another's place
	}
	w, err := s.enter(urgency)
	if w == nil {
		return err
	}
	timer := time.NewTimer(s.cfg.MaxWait)
	defer timer.Stop()
	select {
	case err := <-w.verdict:
		return err
	case <-timer.C:
		return s.leave(w, ErrBusy)
	case <-ctx.Done():
		return s.leave(w, ctx.Err())
	}
}

// enter takes a permit, or a place in the queue as the waiter.
func (s *Shedder) enter(urgency int) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.inUse < s.cfg.Permits: // then nobody waits
		s.inUse++
		return nil, nil
	case s.cfg.Queue == 0:
		s.rejected++
		return nil, ErrBusy
	}
	if s.cfg.Policy != Priority {
		urgency = DefaultUrgency
	}
	// Behind all that are as urgent. The last one goes if the queue is full,
	// whoever that is: the policies differ in nothing else.
	place := slices.IndexFunc(s.waiting, func(other *waiter) bool { return other.urgency > urgency })
	if place < 0 {
		place = len(s.waiting)
	}
	w := &waiter{urgency: urgency, verdict: make(chan error, 1)}
	s.waiting = slices.Insert(s.waiting, place, w)
	if last := len(s.waiting) - 1; last == s.cfg.Queue {
		s.rejected++
		s.waiting[last].verdict <- ErrBusy
		s.waiting = slices.Delete(s.waiting, last, last+1)
	}
	return w, nil
}

// leave takes w out of the queue for this reason, unless there is a verdict
// already: then that counts.
func (s *Shedder) leave(w *waiter, reason error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := slices.Index(s.waiting, w)
	if place < 0 {
		return <-w.verdict
	}
	s.waiting = slices.Delete(s.waiting, place, place+1)
	if reason == ErrBusy {
		s.rejected++
	}
	return reason
}

// release passes the permit on to the first in the queue, if there is one.
func (s *Shedder) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.inUse--
		return
	}
	s.waiting[0].verdict <- nil
	s.waiting = slices.Delete(s.waiting, 0, 1)
}

// Reset forgets the work shed. What is under way or waits goes on.
func (s *Shedder) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected = 0
}

// Snapshot is a shedder at one moment. Taking it changes nothing.
type Snapshot struct {
	Permits  int    `json:"permits"`  // how much work may be under way at once
	InUse    int    `json:"in_use"`   // how much is
	Queue    int    `json:"queue"`    // how much may wait
	Waiting  int    `json:"waiting"`  // how much does
	Rejected uint64 `json:"rejected"` // work shed since the start or Reset
}

// Snapshot reports the permits, the queue and the refusals.
func (s *Shedder) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{
		Permits:  s.cfg.Permits,
		InUse:    s.inUse,
		Queue:    s.cfg.Queue,
		Waiting:  len(s.waiting),
		Rejected: s.rejected,
	}
}
