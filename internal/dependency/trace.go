package dependency

import (
	"strconv"
	"time"
)

// Trace is what one call did, in the order in which it did it. It must not be read
// before the call has ended.
type Trace struct {
	Attempts int
	Steps    []Step
	// GaveUp is why a call that failed got no further attempt, empty if the caller or
	// the total deadline ended it, or there was no retry.
	GaveUp string
}

// Step is what a call spent time on: an attempt, or a wait for the next one.
type Step struct {
	Attempt int    // its number, from 1; 0 for a wait
	Result  string // of an attempt: "503", or its Outcome where no usable answer came
	Took    time.Duration
}

func (t *Trace) attempted(a Attempt) {
	if t == nil {
		return
	}
	result := string(a.Outcome)
	switch a.Outcome {
	case OK, Status4xx, Status5xx:
		result = strconv.Itoa(a.Status)
	}
	t.Attempts++
	t.Steps = append(t.Steps, Step{Attempt: t.Attempts, Result: result, Took: a.Took})
}

func (t *Trace) gaveUp(reason string) {
	if t != nil {
		t.GaveUp = reason
	}
}

func (t *Trace) waited(d time.Duration) {
	if t != nil {
		t.Steps = append(t.Steps, Step{Took: d})
	}
}
