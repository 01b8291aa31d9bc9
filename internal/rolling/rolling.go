// Package rolling counts what happened lately: how many calls failed in the last
// 10 s, how many were retried.
package rolling

import "time"

// steps is how finely a window rolls.
const steps = 50

// Counter counts events over a rolling window. An event counts for the length of
// the window, and is forgotten within a fiftieth of it more. It is not safe for
// concurrent use.
//
// Times enter explicitly. One that is earlier than the latest counts as the
// latest.
type Counter struct {
	step    time.Duration // 0: events count for ever
	start   time.Time     // of bucket 0
	newest  int64         // the number of the newest bucket
	buckets [steps + 1]int
	sum     int // of the buckets
}

// New returns an empty Counter. Those with the same window and start forget events
// of the same moment at the same moment, so that they can be compared. A window of 0
// or less never forgets.
func New(window time.Duration, start time.Time) *Counter {
	step := max(0, window) / steps
	if window > step*steps {
		step++ // so that no event is forgotten too early
	}
	return &Counter{step: step, start: start}
}

// Add counts n events at time now.
func (c *Counter) Add(now time.Time, n int) {
	c.roll(now)
	c.buckets[c.newest%int64(len(c.buckets))] += n
	c.sum += n
}

// Sum is how many events count at time now.
func (c *Counter) Sum(now time.Time) int {
	c.roll(now)
	return c.sum
}

// Clear forgets every event.
func (c *Counter) Clear() {
	if c.sum > 0 {
		c.buckets, c.sum = [steps + 1]int{}, 0
	}
}

// roll forgets what has left the window.
func (c *Counter) roll(now time.Time) {
	if c.step == 0 {
		return
	}
	bucket := int64(now.Sub(c.start) / c.step)
	if bucket-c.newest >= int64(len(c.buckets)) {
		c.Clear()
		c.newest = bucket
	}
	for c.newest < bucket {
		c.newest++
		oldest := &c.buckets[c.newest%int64(len(c.buckets))]
		c.sum -= *oldest
		*oldest = 0
	}
}
