// Package breaker stops calling a dependency that keeps failing, and tries it
// again with a few probes after a cool-down.
//
// The state machine is github.com/sony/gobreaker's. This package adds what its
// callers need: a refusal that carries the remaining time, a look that changes
// nothing, results that count for neither side, and callbacks outside the lock.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// State of a breaker.
type State string

// The three states, as logs spell them.
const (
	Closed   State = "closed"    // calls pass
	Open     State = "open"      // calls are refused
	HalfOpen State = "half_open" // the probes pass, all others are refused
)

// Config says when a breaker opens and how it closes again.
type Config struct {
	// Failures is how many failed calls in a row open it. 0 means 5.
	Failures int
	// Cooldown is how long it stays open. The first call strictly after it is
	// a probe. 0 means 30 s.
	Cooldown time.Duration
	// Probes is how many calls pass while half-open, and how many of them must
	// succeed in a row to close it. One that fails opens it again. 0 means 2.
	//
	// Half-open lasts until its probes have ended: give every call a deadline.
	Probes int
	// Healthy says whether a call that returned this error still shows a
	// dependency in good health. nil means that no error does.
	Healthy func(error) bool
	// Neutral says whether a call that returned this error shows nothing about
	// the dependency. nil means context.Canceled: the caller went away.
	Neutral func(error) bool
	// OnTransition is called after each change of state, in order and one at
	// a time, with no lock held. The call that caused it waits for it, unless
	// an earlier one is still running.
	OnTransition func(Transition)
}

// Transition is one change of state.
type Transition struct {
	From, To State
	At       time.Time
}

// Breaker guards one dependency. It is safe for concurrent use.
type Breaker struct {
	cfg      Config
	gb       *gobreaker.CircuitBreaker[struct{}]
	opens    atomic.Uint64 // how often it opened; atomic, as calls under way ask often
	rejected atomic.Uint64

	mu          sync.Mutex
	state       State        // guarded by mu
	refusal     *OpenError   // guarded by mu; of the latest opening
	transitions uint64       // guarded by mu
	pending     []Transition // guarded by mu; OnTransition has not seen them
	notifying   bool         // guarded by mu; somebody is calling OnTransition
}

// New returns a closed Breaker, or an error that names the field it cannot work
// with.
func New(cfg Config) (*Breaker, error) {
	switch {
	case cfg.Failures < 0 || cfg.Failures > math.MaxInt32:
		return nil, fmt.Errorf("breaker: Failures is %d, must be 0 to %d", cfg.Failures, math.MaxInt32)
	case cfg.Cooldown < 0:
		return nil, fmt.Errorf("breaker: Cooldown is %v, must not be negative", cfg.Cooldown)
	case cfg.Probes < 0 || cfg.Probes > math.MaxInt32:
		return nil, fmt.Errorf("breaker: Probes is %d, must be 0 to %d", cfg.Probes, math.MaxInt32)
	}
	if cfg.Failures == 0 {
		cfg.Failures = 5
	}
	if cfg.Cooldown == 0 {
		cfg.Cooldown = 30 * time.Second
	}
	if cfg.Probes == 0 {
		cfg.Probes = 2
	}
	if cfg.Healthy == nil {
		cfg.Healthy = func(error) bool { return false }
	}
	if cfg.Neutral == nil {
		cfg.Neutral = func(err error) bool { return errors.Is(err, context.Canceled) }
	}
	if cfg.OnTransition == nil {
		cfg.OnTransition = func(Transition) {}
	}
	b := &Breaker{cfg: cfg, state: Closed}
	b.gb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   uint32(cfg.Probes),
		Timeout:       cfg.Cooldown,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= cfg.Failures },
		IsSuccessful:  func(err error) bool { return err == nil || cfg.Healthy(err) },
		IsExcluded:    func(err error) bool { return err != nil && cfg.Neutral(err) },
		OnStateChange: b.changed,
	})
	return b, nil
}

// Do runs fn and returns its error, or an *OpenError without running it.
//
// fn may ask opened whether the breaker has opened since this call was admitted:
// then a further attempt would reach a dependency that everybody else leaves
// alone.
//
// A panic in fn counts as a failure and propagates. A result that arrives after
// a change of state does not count.
func (b *Breaker) Do(fn func(opened func() bool) error) error {
	// Read before admission: should it open in between, the call stops early
	// rather than going on against an open breaker.
	opens := b.opens.Load()
	admitted := false
	defer b.notify()
	_, err := b.gb.Execute(func() (struct{}, error) {
		admitted = true
		b.notify()
		return struct{}{}, fn(func() bool { return b.opens.Load() != opens })
	})
	if admitted {
		return err
	}
	b.rejected.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal
}

// changed runs under gobreaker's lock: it must not call gobreaker, nor anybody
// else's code.
func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = states[to]
	b.transitions++
	b.pending = append(b.pending, Transition{From: states[from], To: states[to], At: now})
	if to == gobreaker.StateOpen {
		b.opens.Add(1)
		// One error serves every refusal until the probe, so refusing
		// allocates nothing.
		b.refusal = &OpenError{until: now.Add(b.cfg.Cooldown)}
	}
}

var states = map[gobreaker.State]State{
	gobreaker.StateClosed:   Closed,
	gobreaker.StateOpen:     Open,
	gobreaker.StateHalfOpen: HalfOpen,
}

// notify passes on what changed, one goroutine at a time so that the order holds,
// and without the lock so that OnTransition may look at the breaker.
func (b *Breaker) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.notifying {
		return
	}
	b.notifying = true
	defer func() { b.notifying = false }()
	for len(b.pending) > 0 {
		next := b.pending[0]
		b.pending = b.pending[1:]
		func() {
			b.mu.Unlock()
			defer b.mu.Lock()
			b.cfg.OnTransition(next)
		}()
	}
}

// Snapshot is a breaker at one moment. Taking it changes nothing, unlike
// gobreaker's State, which moves an open breaker to half-open.
type Snapshot struct {
	State               State
	ProbeDue            bool          // open, the cool-down is over, nobody has called yet
	ConsecutiveFailures int           // so far; 0 unless closed
	OpensAfter          int           // how many open it
	RetryAfter          time.Duration // left of the cool-down; 0 unless open
	Transitions         uint64        // changes of state since the start
	Rejected            uint64        // calls refused since the start
}

// Snapshot reports the state and what it takes to leave it.
func (b *Breaker) Snapshot() Snapshot {
	failures := int(b.gb.Counts().ConsecutiveFailures)
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Snapshot{
		State:       b.state,
		OpensAfter:  b.cfg.Failures,
		Transitions: b.transitions,
		Rejected:    b.rejected.Load(),
	}
	switch b.state {
	case Closed:
		s.ConsecutiveFailures = failures
	case Open:
		s.RetryAfter = b.refusal.RetryAfter()
		s.ProbeDue = time.Now().After(b.refusal.until) // strictly, as gobreaker does
	}
	return s
}
