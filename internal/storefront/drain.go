package storefront

import (
	"context"
	"net/http"
	"sync"
)

// drain counts the accepted work, and lets in no more once it has begun. Its
// zero value lets everything in.
type drain struct {
	mu       sync.Mutex
	draining bool           // guarded by mu
	work     sync.WaitGroup // grows only under mu, while not draining
}

// enter accepts a piece of work, for which leave must be called once.
func (d *drain) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return false
	}
	d.work.Add(1)
	return true
}

func (d *drain) leave() { d.work.Done() }

func (d *drain) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.draining = true
}

func (d *drain) begun() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

// wait returns once the accepted work has ended, or with an error when ctx ends
// first. It must follow begin.
func (d *drain) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		d.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
