package storefront

import (
	"sync"
	"time"
)

// What bounds a cache. The copy that was made longest ago goes; a larger one is not
// made.
const (
	maxCopies   = 1000
	maxCopySize = 64 << 10 // bytes
)

// copies are the last good answers. Its zero value is empty.
type copies struct {
	mu   sync.Mutex
	byID map[string]stored // guarded by mu
}

type stored struct {
	body []byte
	at   time.Time
}

func (c *copies) put(id string, body []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(body) > maxCopySize {
		delete(c.byID, id) // the old one is not the last good one any more
		return
	}
	if c.byID == nil {
		c.byID = map[string]stored{}
	}
	if _, ok := c.byID[id]; !ok && len(c.byID) == maxCopies {
		delete(c.byID, c.oldest())
	}
	c.byID[id] = stored{body, now}
}

// get also says how old the copy is.
func (c *copies) get(id string, now time.Time) (body []byte, age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.byID[id]
	return s.body, max(0, now.Sub(s.at)), ok
}

func (c *copies) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byID)
}

func (c *copies) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// oldest must be called with mu held.
func (c *copies) oldest() (id string) {
	var at time.Time
	for other, s := range c.byID {
		if id == "" || s.at.Before(at) {
			id, at = other, s.at
		}
	}
	return id
}
