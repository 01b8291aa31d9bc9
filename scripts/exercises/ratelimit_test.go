package exercises

import (
	"fmt"
	"time"
)

func checkLimit(newLimit func() func(time.Time) bool) error {
	midnight := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	pass := func(allow func(time.Time) bool, requests int, from time.Time, every time.Duration) (passed int) {
		for n := range requests {
			if allow(from.Add(time.Duration(n) * every)) {
				passed++
			}
		}
		return passed
	}
	if got := pass(newLimit(), 20, midnight, 0); got != Quota {
		return fmt.Errorf("20 requests at once: %d pass, want %d", got, Quota)
	}
	edge := newLimit()
	got := pass(edge, 20, midnight.Add(-time.Millisecond), 0) + pass(edge, 20, midnight, 0)
	if got != Quota {
		return fmt.Errorf("20 requests 1ms before the full second, and 20 at it: %d pass, want %d", got, Quota)
	}
	for offset := time.Duration(0); offset < time.Second; offset += 50 * time.Millisecond {
		limit, edge := newLimit(), midnight.Add(time.Second+offset)
		first := pass(limit, 1, midnight, 0)
		got := pass(limit, 20, edge.Add(-time.Millisecond), 0) + pass(limit, 20, edge, 0)
		if first != 1 || got < Quota-1 || got > Quota+1 {
			return fmt.Errorf("one request, then 20 after %v, and 20 1ms later: %d pass of these, want %d", time.Second+offset-time.Millisecond, got, Quota)
		}
	}
	if got := pass(newLimit(), 200, midnight, 50*time.Millisecond); got < 9*Quota || got > 11*Quota {
		return fmt.Errorf("20 requests a second for 10s: %d pass, want %d to %d", got, 9*Quota, 11*Quota)
	}
	return nil
}
