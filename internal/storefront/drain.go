package storefront

import (
	"context"
	"net/http"
	"sync"
)

// drain counts the accepted work, and lets in no more once it has begun.
type drain struct {
	started context.Context // ends when the drain begins
	start   func()

	mu    sync.Mutex
	work  int           // guarded by mu
	ended chan struct{} // guarded by mu; nil until draining, closed when work is 0
}

func newDrain() *drain {
	d := &drain{}
	d.started, d.start = context.WithCancel(context.Background())
	return d
}

// enter accepts a piece of work, for which leave must be called once.
func (d *drain) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended != nil {
		return false
	}
	d.work++
	return true
}

func (d *drain) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.work--
	d.check()
}

// begin starts the drain. The channel is closed once the accepted work has ended.
func (d *drain) begin() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start()
	d.ended = make(chan struct{})
	d.check()
	return d.ended
}

// check must be called with mu held.
func (d *drain) check() {
	if d.ended != nil && d.work == 0 {
		close(d.ended)
	}
}

func (d *drain) begun() bool { return d.started.Err() != nil }

// unlessDraining refuses new work once draining has begun, and counts the rest.
func (s *service) unlessDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.drain.enter() {
			w.Header().Set("Connection", "close")
			s.fail(w, r, errDraining)
			return
		}
		defer s.drain.leave()
		next.ServeHTTP(w, r)
	})
}
