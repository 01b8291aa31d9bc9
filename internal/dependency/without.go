package dependency

import (
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/retry"
)

// Without says which layers a call leaves out. The zero value leaves out none.
type Without struct {
	Bulkhead bool
	Breaker  bool
	Retry    bool
	Timeout  bool // the attempt's own; the total deadline stays
}

// withoutTimeout marks the context of a call without the timeout: its dials may take
// as long as it may.
type withoutTimeout struct{}

// layers are those of one call. nil ones let it through.
type layers struct {
	bulkhead *bulkhead.Bulkhead
	breaker  *breaker.Breaker
	retry    *retry.Retrier
	timeout  time.Duration
}

func (c *Client) layersWithout(without Without) layers {
	l := layers{c.bulkhead, c.breaker, c.retry, c.policy.Timeout}
	if without.Bulkhead {
		l.bulkhead = nil
	}
	if without.Breaker {
		l.breaker = nil
	}
	if without.Retry {
		l.retry = nil
	}
	if without.Timeout {
		l.timeout = c.policy.Deadline
	}
	return l
}
