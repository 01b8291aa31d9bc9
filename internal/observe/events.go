// Package observe passes on what the service does to those who watch it: as events,
// counted by the second, and as Prometheus metrics. Watching changes nothing, and never
// holds anything up.
package observe

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	backlog = 1024 // how many events a subscriber may be behind
	kept    = 30   // how many events of a topic are kept
)

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
	past        map[string][]past   // guarded by mu; by topic, the oldest first
	recorded    uint64              // guarded by mu
}

// past is an event that has been recorded.
type past struct {
	n    uint64 // the how many-th
	name string
	data any
}

// Subscribe returns the events recorded of late and, in order, those from now on. The
// channel is closed when its reader has fallen 1024 events behind and another one comes.
// stop must be called in the end; it does not close the channel.
func (e *Events) Subscribe() (before []Event, events <-chan Event, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := make(chan Event, backlog)
	if e.subscribers == nil {
		e.subscribers = map[chan Event]bool{}
	}
	e.subscribers[ch] = true
	e.some.Store(true)
	return e.before(), ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subscribers, ch)
		e.some.Store(len(e.subscribers) > 0)
	}
}

// before must be called with mu held.
func (e *Events) before() []Event {
	var all []past
	for _, events := range e.past {
		all = append(all, events...)
	}
	slices.SortFunc(all, func(a, b past) int { return cmp.Compare(a.n, b.n) })
	before := make([]Event, len(all))
	for i, p := range all {
		before[i] = Event{p.name, encode(p.data)}
	}
	return before
}

// HasSubscribers says whether anybody listens: for nobody an event that is not recorded
// need not even be made.
func (e *Events) HasSubscribers() bool { return e.some.Load() }

// Publish passes on an event, which must encode as JSON. It never waits: a subscriber
// without room is dropped.
func (e *Events) Publish(name string, data any) {
	if e.HasSubscribers() {
		e.publish(name, data, func() {})
	}
}

// Record does so, too, and keeps the event for those who subscribe later, with the 29
// before it of the same topic. data must not be changed after that.
func (e *Events) Record(topic, name string, data any) {
	e.publish(name, data, func() { e.record(topic, name, data) })
}

// Forget drops what has been recorded, and passes on the event that says so.
func (e *Events) Forget(name string, data any) {
	e.publish(name, data, func() { e.past = nil })
}

// publish keeps, with mu held, what it has to.
func (e *Events) publish(name string, data any, keep func()) {
	var body []byte
	if e.HasSubscribers() {
		body = encode(data)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	keep()
	for ch := range e.subscribers {
		if body == nil { // it has subscribed just now
			body = encode(data)
		}
		select {
		case ch <- Event{name, body}:
		default:
			close(ch)
			delete(e.subscribers, ch)
		}
	}
	e.some.Store(len(e.subscribers) > 0)
}

// record must be called with mu held.
func (e *Events) record(topic, name string, data any) {
	if e.past == nil {
		e.past = map[string][]past{}
	}
	e.recorded++
	events := append(e.past[topic], past{e.recorded, name, data})
	if len(events) > kept {
		events = slices.Delete(events, 0, 1)
	}
	e.past[topic] = events
}

func encode(data any) []byte {
	body, err := json.Marshal(data)
	if err != nil {
		panic(err) // a mistake in the code
	}
	return body
}
