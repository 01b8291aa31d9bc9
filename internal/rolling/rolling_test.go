package rolling

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Unix(0, 0)

func TestTimeline(t *testing.T) {
	const s = time.Second
	c := New(10*s, start)
	for _, row := range []struct {
		at   time.Duration
		add  int
		want int
	}{
		{0, 3, 3},
		{5 * s, 2, 5},
		{4 * s, 1, 6},      // the clock steps back: counts as at 5 s
		{10 * s, 0, 6},     // the whole window
		{10*s + s/5, 0, 3}, // one step more
		{15 * s, 0, 3},
		{15*s + s/5, 0, 0},
		{time.Hour, 4, 4},
		{2 * time.Hour, 0, 0},
	} {
		now := start.Add(row.at)
		c.Add(now, row.add)
		if got := c.Sum(now); got != row.want {
			t.Errorf("at %v: %d, want %d", row.at, got, row.want)
		}
	}
	c.Add(start.Add(2*time.Hour), 7)
	c.Clear()
	if got := c.Sum(start.Add(2 * time.Hour)); got != 0 {
		t.Errorf("%d after Clear", got)
	}
}

// Whenever they happen, events count for the window and not for a step more.
func TestNoEventIsForgottenTooEarlyOrTooLate(t *testing.T) {
	for _, window := range []time.Duration{1, 77, 77 * time.Microsecond, 10 * time.Second} {
		c := New(window, start)
		step := (window + steps - 1) / steps
		now := start
		var events []time.Time
		for range 500 {
			now = now.Add(rand.N(window/4 + 1))
			c.Add(now, 1)
			events = append(events, now)
			least, most := 0, 0
			for _, e := range events {
				age := now.Sub(e)
				if age <= window {
					least++
				}
				if age <= step*(steps+1) {
					most++
				}
			}
			if got := c.Sum(now); got < least || got > most {
				t.Fatalf("window %v: %d, want %d to %d", window, got, least, most)
			}
		}
	}
}

// Counters that start together are comparable, whatever comes first for each.
func TestCountersForgetTogether(t *testing.T) {
	const ms = time.Millisecond
	failures, calls := New(10*time.Second, start), New(10*time.Second, start)
	calls.Add(start, 1)
	calls.Add(start.Add(190*ms), 9)
	failures.Add(start.Add(190*ms), 9)
	for at := 9 * time.Second; at < 11*time.Second; at += 10 * ms {
		now := start.Add(at)
		if f, c := failures.Sum(now), calls.Sum(now); f > c {
			t.Fatalf("at %v: %d failures of %d calls", at, f, c)
		}
	}
}

func TestClearForgetsForGood(t *testing.T) {
	c := New(10*time.Second, start)
	c.Add(start, 5)
	c.Clear()
	c.Add(start.Add(time.Second), 1)
	if got := c.Sum(start.Add(10*time.Second + 500*time.Millisecond)); got != 1 {
		t.Errorf("%d, want 1: what was cleared must not be subtracted again", got)
	}
}

func TestLongestWindowDoesNotOverflow(t *testing.T) {
	c := New(math.MaxInt64, start)
	c.Add(start, 1)
	if got := c.Sum(start.Add(math.MaxInt64)); got != 1 || c.step <= 0 {
		t.Errorf("%d with steps of %v", got, c.step)
	}
}

func TestWindowOfZeroNeverForgets(t *testing.T) {
	for _, window := range []time.Duration{0, -1, -time.Hour} {
		c := New(window, start)
		c.Add(start, 1)
		if got := c.Sum(start.Add(1000 * time.Hour)); got != 1 {
			t.Errorf("window %v: %d, want 1", window, got)
		}
	}
}
