// Package observe passes on what the service does to those who watch it: as events,
// and as Prometheus metrics. Watching changes nothing, and never holds anything up.
package observe

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

// backlog is how many events a watcher may be behind.
const backlog = 1024

// Event is something that happened.
type Event struct {
	Name string
	Data []byte // JSON, on one line
}

// Events tells watchers what happens. The zero value has none. It is safe for
// concurrent use.
type Events struct {
	watched  atomic.Bool
	mu       sync.Mutex
	watchers map[chan Event]bool // guarded by mu
}

// Watch returns the events from now on, in order. The channel is closed when its reader
// falls more than 1024 events behind. stop must be called in the end.
func (e *Events) Watch() (events <-chan Event, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := make(chan Event, backlog)
	if e.watchers == nil {
		e.watchers = map[chan Event]bool{}
	}
	e.watchers[ch] = true
	e.watched.Store(true)
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.watchers, ch)
		e.watched.Store(len(e.watchers) > 0)
	}
}

// Watched says whether anybody watches: nobody else needs an event made.
func (e *Events) Watched() bool { return e.watched.Load() }

// Tell passes on an event, which must encode as JSON. It never waits: a watcher
// without room is dropped.
func (e *Events) Tell(name string, data any) {
	if !e.Watched() {
		return
	}
	body, err := json.Marshal(data)
	if err != nil {
		panic(err) // a mistake in the code
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.watchers {
		select {
		case ch <- Event{name, body}:
		default:
			close(ch)
			delete(e.watchers, ch)
		}
	}
	e.watched.Store(len(e.watchers) > 0)
}
