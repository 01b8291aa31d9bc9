package exercises

import (
	"time"

	"golang.org/x/time/rate"
)

// NewLimitAnswer is a token bucket: what was used up comes back one by one, not all
// at the full second.
func NewLimitAnswer() func(now time.Time) (allowed bool) {
	bucket := rate.NewLimiter(Quota, Quota)
	return func(now time.Time) bool { return bucket.AllowN(now, 1) }
}
