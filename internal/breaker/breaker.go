// Package breaker stops calling a dependency that keeps failing, and tries it
// again with a few probes after a cool-down.
//
// The state machine is github.com/sony/gobreaker's. This package adds what its
// callers need: a refusal that carries the remaining time, a look that changes
// nothing, results that count for neither side, and callbacks outside the lock.
package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

// Config says when a breaker opens and how it closes again. It opens by one of
// two rules: after Failures in a row or, where FailureRatio is set, when that
// share of the recent calls failed.
type Config struct {
	// Failures is how many failed calls in a row open it. 0 means 5. It must
	// be 0 where FailureRatio is set.
	Failures int
	// FailureRatio is the share of failed calls that opens it, in (0, 1], once
	// at least MinCalls have ended within Window. Each failure is an occasion
	// to open, a success is none. 0 means the rule of Failures in a row.
	FailureRatio float64
	// MinCalls is how many calls a ratio needs to say anything. 0 means 20.
	// Failures in a row do without.
	MinCalls int
	// Window is how far back either rule looks, within a fiftieth. 0 means
	// 10 s for a ratio, and no limit for failures in a row. It should be well
	// above the time that a call takes.
	Window time.Duration
	// Cooldown is how long it stays open. The first call strictly after it is
	// a probe. 0 means 30 s.
	Cooldown time.Duration
	// Jitter spreads Cooldown, so that the breakers of many instances do not
	// probe together: a share of it, in [0, 1), drawn once, longer or shorter.
	Jitter float64
	// Probes is how many calls pass while half-open, and how many of them must
	// succeed in a row to close it, at most 2^31-1. One that fails opens it
	// again. 0 means 2.
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

// Breaker guards one dependency. It is safe for concurrent use. Do of a nil one lets
// every call pass; it has no other method.
type Breaker struct {
	cfg     Config
	machine atomic.Pointer[gobreaker.CircuitBreaker[struct{}]] // Reset replaces it
	opens   atomic.Uint64                                      // how often it opened; atomic, as calls under way ask often

	mu          sync.Mutex
	generation  int          // guarded by mu; of the machine
	state       State        // guarded by mu
	rule        rule         // guarded by mu
	refusal     *OpenError   // guarded by mu; of the latest opening
	transitions uint64       // guarded by mu
	rejected    uint64       // guarded by mu
	pending     []Transition // guarded by mu; OnTransition has not seen them
	notifying   bool         // guarded by mu; somebody is calling OnTransition
}

// New returns a closed Breaker, or an error that names the field it cannot work
// with.
func New(cfg Config) (*Breaker, error) {
	switch {
	case cfg.Failures < 0:
		return nil, fmt.Errorf("breaker: Failures is %d, must not be negative", cfg.Failures)
	case !(cfg.FailureRatio >= 0 && cfg.FailureRatio <= 1):
		return nil, fmt.Errorf("breaker: FailureRatio is %v, must be 0 to 1", cfg.FailureRatio)
	case cfg.FailureRatio > 0 && cfg.Failures > 0:
		return nil, fmt.Errorf("breaker: Failures is %d beside a FailureRatio, must be 0", cfg.Failures)
	case cfg.MinCalls < 0:
		return nil, fmt.Errorf("breaker: MinCalls is %d, must not be negative", cfg.MinCalls)
	case cfg.Window < 0:
		return nil, fmt.Errorf("breaker: Window is %v, must not be negative", cfg.Window)
	case cfg.Cooldown < 0:
		return nil, fmt.Errorf("breaker: Cooldown is %v, must not be negative", cfg.Cooldown)
	case !(cfg.Jitter >= 0 && cfg.Jitter < 1):
		return nil, fmt.Errorf("breaker: Jitter is %v, must be at least 0 and below 1", cfg.Jitter)
	case cfg.Probes < 0 || cfg.Probes > math.MaxInt32:
		return nil, fmt.Errorf("breaker: Probes is %d, must be 0 to %d", cfg.Probes, math.MaxInt32)
	}
	cfg.Failures = cmp.Or(cfg.Failures, 5)
	cfg.MinCalls = cmp.Or(cfg.MinCalls, 20)
	if cfg.FailureRatio > 0 && cfg.Window == 0 {
		cfg.Window = 10 * time.Second
	}
	cfg.Cooldown = cmp.Or(cfg.Cooldown, 30*time.Second)
	cfg.Probes = cmp.Or(cfg.Probes, 2)
	if cfg.Healthy == nil {
		cfg.Healthy = func(error) bool { return false }
	}
	if cfg.Neutral == nil {
		cfg.Neutral = func(err error) bool { return errors.Is(err, context.Canceled) }
	}
	if cfg.OnTransition == nil {
		cfg.OnTransition = func(Transition) {}
	}
	if cfg.Jitter > 0 {
		factor := 1 + cfg.Jitter*(2*rand.Float64()-1)
		// Not 0, which means a minute to gobreaker, and the longest must not overflow.
		cfg.Cooldown = max(1, time.Duration(min(float64(cfg.Cooldown)*factor, math.MaxInt64/2)))
	}
	b := &Breaker{cfg: cfg, state: Closed, rule: newRule(cfg)}
	b.machine.Store(b.newMachine(0))
	return b, nil
}

// newMachine returns one that changes b until the next reset.
func (b *Breaker) newMachine(generation int) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   uint32(b.cfg.Probes),
		Timeout:       b.cfg.Cooldown,
		ReadyToTrip:   func(gobreaker.Counts) bool { return b.failed(generation) },
		IsSuccessful:  func(err error) bool { return b.succeeded(generation, err) },
		IsExcluded:    func(err error) bool { return err != nil && b.cfg.Neutral(err) },
		OnStateChange: func(_ string, from, to gobreaker.State) { b.changed(generation, states[from], states[to]) },
	})
}

// Reset closes b and forgets what was counted. The calls under way go on, and their
// results count no more. The jitter stays the one that was drawn.
func (b *Breaker) Reset() {
	defer b.notify()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.generation++
	b.machine.Store(b.newMachine(b.generation))
	if b.state != Closed {
		b.pending = append(b.pending, Transition{From: b.state, To: Closed, At: time.Now()})
	}
	b.state = Closed
	b.rule.clear()
	b.transitions, b.rejected = 0, 0
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
	if b == nil {
		return fn(func() bool { return false })
	}
	defer b.notify()
	for {
		// Read before admission: should it open in between, the call stops
		// early rather than going on against an open breaker.
		opens := b.opens.Load()
		admitted := false
		machine := b.machine.Load()
		_, err := machine.Execute(func() (struct{}, error) {
			admitted = true
			b.notify()
			return struct{}{}, fn(func() bool { return b.opens.Load() != opens })
		})
		if admitted {
			return err
		}
		if refusal := b.refuse(machine); refusal != nil {
			return refusal
		}
	}
}

// refuse counts a refusal and returns its error, or nil if a reset has replaced the
// machine that refused: then the next one is to be asked.
func (b *Breaker) refuse(machine *gobreaker.CircuitBreaker[struct{}]) *OpenError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if machine != b.machine.Load() {
		return nil
	}
	b.rejected++
	return b.refusal
}

// succeeded and failed are called for each result that counts, and only for
// those: failed if succeeded says no and the breaker is closed. gobreaker counts
// too, but its rolling counts grow old only when a call comes, and a Snapshot
// must not show failures of long ago.
//
// What a machine from before a reset calls changes nothing any more.
func (b *Breaker) succeeded(generation int, err error) bool {
	if err != nil && !b.cfg.Healthy(err) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation == b.generation {
		b.rule.succeeded(time.Now())
	}
	return true
}

func (b *Breaker) failed(generation int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return generation == b.generation && b.rule.failed(time.Now())
}

// changed runs under gobreaker's lock: it must not call gobreaker, nor anybody
// else's code.
func (b *Breaker) changed(generation int, from, to State) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation != b.generation {
		return
	}
	b.state = to
	b.rule.clear()
	b.transitions++
	b.pending = append(b.pending, Transition{From: from, To: to, At: now})
	if to == Open {
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
