package dependency

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// parseRetryAfter reads a Retry-After (RFC 9110, §10.2.3): whole seconds, or one
// of the three HTTP dates. Anything else, and anything that would overflow, is
// 0 as if absent; so is a date that has passed.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if date, err := http.ParseTime(value); err == nil {
		wait := date.Sub(now)
		if wait == math.MaxInt64 { // Sub saturates
			return 0
		}
		return max(0, wait)
	}
	// ParseUint takes no sign, which the grammar does not have either.
	seconds, err := strconv.ParseUint(value, 10, 63)
	if err != nil || seconds > uint64(math.MaxInt64/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
