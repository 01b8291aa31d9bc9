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
	now := time.Now()
	return &budget{
		share: share, floor: floor,
		calls: rolling.New(budgetWindow, now), retries: rolling.New(budgetWindow, now),
	}
}

// call counts a call, retried or not.
func (b *budget) call(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls.Add(now, 1)
}

// grant promises a retry, for which use or drop must be called once.
func (b *budget) grant(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left(now) < 1 {
		b.refused++
		return false
	}
	b.granted++
	return true
}

// use starts a granted retry, unless the calls that it was granted for have grown
// old in the wait.
func (b *budget) use(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted--
	if b.retries.Sum(now) >= b.most(now) {
		b.refused++
		return false
	}
	b.retries.Add(now, 1)
	return true
}

// drop gives back a granted retry that will not be made.
func (b *budget) drop() {
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
	return max(0, b.most(now)-b.retries.Sum(now)-b.granted)
}

// most must be called with mu held.
func (b *budget) most(now time.Time) int {
	const noise = 1e-9 // 0.29 * 100 is a little less than 29 in floating point
	return int(noise + max(b.floor*budgetWindow.Seconds(), b.share*float64(b.calls.Sum(now))))
}
