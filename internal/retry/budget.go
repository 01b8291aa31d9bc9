package retry

import (
	"sync"
	"time"

	"example.com/storefront/internal/rolling"
)

// budgetWindow is how far back a budget looks.
const budgetWindow = 10 * time.Second

// budget bounds the retries of all calls together: when everything fails, each
// call on its own would multiply a load that the dependency cannot take already.
// See "Addressing Cascading Failures" in "Site Reliability Engineering" (2016).
type budget struct {
	share, floor float64

	mu      sync.Mutex
	calls   *rolling.Counter // guarded by mu
	retries *rolling.Counter // guarded by mu; those made
	granted int              // guarded by mu; those still waiting
	refused uint64           // guarded by mu
}

func newBudget(share, floor float64) *budget {
	return &budget{share: share, floor: floor, calls: rolling.New(budgetWindow), retries: rolling.New(budgetWindow)}
}

// call counts a call, retried or not.
func (b *budget) call(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls.Add(now, 1)
}

// take grants a retry, for which made or dropped must be called once.
func (b *budget) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left(now) < 1 {
		b.refused++
		return false
	}
	b.granted++
	return true
}

// made counts a granted retry when it starts.
func (b *budget) made(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted--
	b.retries.Add(now, 1)
}

// dropped gives back a granted retry that will not be made.
func (b *budget) dropped() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted--
}

// snapshot is how many retries would be granted now, and how many were refused.
func (b *budget) snapshot(now time.Time) (left int, refused uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left(now), b.refused
}

// left must be called with mu held.
func (b *budget) left(now time.Time) int {
	const noise = 1e-9 // 0.29 * 100 is a little less than 29 in floating point
	most := max(b.floor*budgetWindow.Seconds(), b.share*float64(b.calls.Sum(now)))
	return max(0, int(most+noise)-b.retries.Sum(now)-b.granted)
}
