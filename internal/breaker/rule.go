package breaker

import (
	"time"

	"example.com/storefront/internal/rolling"
)

// rule says when a closed breaker opens: after some failures in a row or, with a
// ratio, when too large a share of the recent calls failed.
type rule struct {
	opensAfter int     // failures in a row …
	ratio      float64 // … unless this is not 0
	minCalls   int
	failures   *rolling.Counter
	finished   *rolling.Counter // counted for a ratio only
}

func newRule(cfg Config) rule {
	now := time.Now()
	return rule{
		opensAfter: cfg.Failures,
		ratio:      cfg.FailureRatio,
		minCalls:   cfg.MinCalls,
		failures:   rolling.New(cfg.Window, now),
		finished:   rolling.New(cfg.Window, now),
	}
}

func (r *rule) succeeded(now time.Time) {
	if r.ratio == 0 {
		r.failures.Clear()
		return
	}
	r.finished.Add(now, 1)
}

// failed reports whether the breaker opens.
func (r *rule) failed(now time.Time) bool {
	r.failures.Add(now, 1)
	if r.ratio == 0 {
		return r.failures.Sum(now) >= r.opensAfter
	}
	r.finished.Add(now, 1)
	calls := r.finished.Sum(now)
	// Divided, as 0.07 * 100 is more than 7 in floating point, and 7 / 100 is 0.07.
	return calls >= r.minCalls && float64(r.failures.Sum(now))/float64(calls) >= r.ratio
}

func (r *rule) clear() {
	r.failures.Clear()
	r.finished.Clear()
}
