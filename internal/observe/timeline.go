package observe

import (
	"maps"
	"sync"
	"time"
)

// timelineSeconds is how far back a Timeline goes.
const timelineSeconds = 120

// Timeline counts by the second what happened in the last two minutes. The zero value
// has counted nothing. It is safe for concurrent use.
type Timeline struct {
	mu      sync.Mutex
	seconds [timelineSeconds]Second // guarded by mu; each at At modulo their number
}

// Second is what happened within a second.
type Second struct {
	At     int64          `json:"at"`     // when it began, in Unix time
	Counts map[string]int `json:"counts"` // by name
}

// Count counts one more of this name, which must come from a fixed set, at time now.
func (t *Timeline) Count(now time.Time, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.Unix()
	s := &t.seconds[at%timelineSeconds]
	if s.At != at {
		*s = Second{at, map[string]int{}}
	}
	s.Counts[name]++
}

// Since has the seconds from that of from to that of now in which something was counted,
// the oldest first; two minutes at most.
func (t *Timeline) Since(from, now time.Time) []Second {
	t.mu.Lock()
	defer t.mu.Unlock()
	seconds := []Second{}
	for at := max(from.Unix(), now.Unix()-timelineSeconds+1); at <= now.Unix(); at++ {
		if s := t.seconds[at%timelineSeconds]; s.At == at && len(s.Counts) > 0 {
			seconds = append(seconds, Second{at, maps.Clone(s.Counts)})
		}
	}
	return seconds
}

// Reset forgets what was counted.
func (t *Timeline) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seconds = [timelineSeconds]Second{}
}
