// Package observe passes on what the service does to those who watch it: as events,
// and as Prometheus metrics. Watching changes nothing, and never holds anything up.
package observe

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

// backlog is how many events a subscriber may be behind.
const backlog = 1024

// Event is something that happened.
type Event struct {
	Name string
	Data []byte // JSON, on one line
}

// Events passes on what happens. The zero value has no subscribers. It is safe for
// concurrent use.
type Events struct {
	some        atomic.Bool // whether there are subscribers
	mu          sync.Mutex
	subscribers map[chan Event]bool // guarded by mu
}

// Subscribe returns the events from now on, in order. The channel is closed when its
// reader has fallen 1024 events behind and another one comes. stop must be called in
// the end; it does not close the channel.
func (e *Events) Subscribe() (events <-chan Event, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := make(chan Event, backlog)
	if e.subscribers == nil {
		e.subscribers = map[chan Event]bool{}
	}
	e.subscribers[ch] = true
	e.some.Store(true)
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subscribers, ch)
		e.some.Store(len(e.subscribers) > 0)
	}
}

// HasSubscribers says whether anybody listens: for nobody an event need not even be
// made.
func (e *Events) HasSubscribers() bool { return e.some.Load() }

// Publish passes on an event, which must encode as JSON. It never waits: a subscriber
// without room is dropped.
func (e *Events) Publish(name string, data any) {
	if !e.HasSubscribers() {
		return
	}
	body, err := json.Marshal(data)
	if err != nil {
		panic(err) // a mistake in the code
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.subscribers {
		select {
		case ch <- Event{name, body}:
		default:
			close(ch)
			delete(e.subscribers, ch)
		}
	}
	e.some.Store(len(e.subscribers) > 0)
}
