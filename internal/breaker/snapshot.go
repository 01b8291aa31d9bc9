package breaker

import (
	"encoding/json"
	"time"
)

// Snapshot is a breaker at one moment, its counts those since the start or Reset. Taking
// it changes nothing, unlike gobreaker's State, which moves an open breaker to half-open.
type Snapshot struct {
	State       State
	ProbeDue    bool          // open, the cool-down is over, nobody has called yet
	RetryAfter  time.Duration // left of the cool-down; 0 unless open
	Transitions uint64        // changes of state
	Rejected    uint64        // calls refused

	// What could open it, 0 unless closed: failures in a row, or within the
	// window where a ratio rules.
	Failures int
	// OpensAfter is how many in a row open it; 0 where a ratio rules.
	OpensAfter int
	// Calls is how many ended within the window, 0 unless closed; MinCalls and
	// FailureRatio are the thresholds. All 0 where no ratio rules.
	Calls, MinCalls int
	FailureRatio    float64
}

// Snapshot reports the state and what it takes to leave it.
func (b *Breaker) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	s := Snapshot{State: b.state, Transitions: b.transitions, Rejected: b.rejected}
	if b.state == Open {
		s.RetryAfter = b.refusal.RetryAfter()
		s.ProbeDue = now.After(b.refusal.until) // strictly, as gobreaker does
	}
	if b.state == Closed {
		s.Failures = b.rule.failures.Sum(now)
		s.Calls = b.rule.finished.Sum(now)
	}
	if b.rule.ratio > 0 {
		s.MinCalls, s.FailureRatio = b.rule.minCalls, b.rule.ratio
	} else {
		s.OpensAfter = b.rule.opensAfter
	}
	return s
}

// MarshalJSON writes what the rule in force looks at, and nothing of the other.
func (s Snapshot) MarshalJSON() ([]byte, error) {
	type inARow struct {
		ConsecutiveFailures int `json:"consecutive_failures"`
		OpensAfter          int `json:"opens_after"`
	}
	type byRatio struct {
		Failures     int     `json:"failures"`
		Calls        int     `json:"calls"`
		MinCalls     int     `json:"min_calls"`
		FailureRatio float64 `json:"failure_ratio"`
	}
	out := struct {
		State    State `json:"state"`
		ProbeDue bool  `json:"probe_due"`
		*inARow
		*byRatio
		RetryAfter  int64  `json:"retry_after_ms"` // rounded up
		Transitions uint64 `json:"transitions"`
		Rejected    uint64 `json:"rejected"`
	}{
		State: s.State, ProbeDue: s.ProbeDue,
		RetryAfter:  int64((s.RetryAfter + time.Millisecond - 1) / time.Millisecond),
		Transitions: s.Transitions, Rejected: s.Rejected,
	}
	if s.FailureRatio > 0 {
		out.byRatio = &byRatio{s.Failures, s.Calls, s.MinCalls, s.FailureRatio}
	} else {
		out.inARow = &inARow{s.Failures, s.OpensAfter}
	}
	return json.Marshal(out)
}
