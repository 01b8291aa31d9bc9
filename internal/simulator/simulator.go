// Package simulator acts out the dependencies that the storefront calls, with
// their state and their faults. Each is deterministic: the same calls in the same
// order get the same answers.
package simulator

import (
	"net/http"
	"sync"
	"time"
)

// writeTimeout is for a caller to take its answer.
const writeTimeout = 10 * time.Second

// Dependency is a simulated dependency, all of whose routes but the ones that
// only look share one fault. It is safe for concurrent use.
type Dependency struct {
	initial Fault // what the zero Fault means
	serve   func(w http.ResponseWriter, r *http.Request, call int)
	forget  func() // nil where there is no state

	mu    sync.Mutex
	fault Fault // guarded by mu
	calls int   // guarded by mu; since the fault was set
}

// newDependency returns one that acts out initial until a fault is set. serve is
// told the number of the call, from 1.
func newDependency(initial Fault, serve func(http.ResponseWriter, *http.Request, int)) *Dependency {
	return &Dependency{initial: initial, fault: initial, serve: serve}
}

// Set puts a fault in force and starts its script and the count of calls again. It
// returns the new setting, or an error that names the field that it cannot work with;
// then nothing changes.
func (d *Dependency) Set(f Fault) (Setting, error) {
	f, err := f.withDefaults(d.initial)
	if err != nil {
		return Setting{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.calls = f, 0
	return d.setting(), nil
}

// Reset makes the dependency as it was at the start, its fault, its count and its
// state, and returns the new setting.
func (d *Dependency) Reset() Setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.calls = d.initial, 0
	if d.forget != nil {
		d.forget()
	}
	return d.setting()
}

// Setting is the fault in force.
type Setting struct {
	Script     string `json:"script"`
	Next       int    `json:"next"` // which letter of Script is the next call's, from 0
	Status     int    `json:"status"`
	Latency    string `json:"latency,omitempty"` // a Go duration, empty for none
	RetryAfter string `json:"retry_after,omitempty"`
}

// Setting returns the fault in force, and where its script stands.
func (d *Dependency) Setting() Setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.setting()
}

// setting must be called with mu held.
func (d *Dependency) setting() Setting {
	s := Setting{
		Script: d.fault.Script, Next: d.calls % len(d.fault.Script),
		Status: d.fault.Status, RetryAfter: d.fault.RetryAfter,
	}
	if d.fault.Latency > 0 {
		s.Latency = d.fault.Latency.String()
	}
	return s
}

// next is the number of a new call, from 1, and how it goes.
func (d *Dependency) next() (call int, act byte, f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	act = d.fault.Script[d.calls%len(d.fault.Script)]
	d.calls++
	return d.calls, act, d.fault
}

// ServeHTTP answers a call as the script says, after the fault's latency.
func (d *Dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, act, fault := d.next()
	if fault.Latency > 0 {
		// The server's own deadline may be shorter. An error means that there is none.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(fault.Latency + writeTimeout))
		timer := time.NewTimer(fault.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // or net/http would answer 200
		}
	}
	switch act {
	case succeed:
		d.serve(w, r, call)
	case fail:
		fault.fail(w)
	case hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case reset:
		resetConnection(w)
	case malformed:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"call":`)) // the caller may have left
	case lost:
		d.serve(discard{}, r, call)
		panic(http.ErrAbortHandler)
	}
}

// healthy is the fault of a dependency without one.
var healthy = Fault{Script: "S", Status: http.StatusServiceUnavailable}

func writeJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the caller may have left
}

// refuse answers an error as one line of text.
func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(reason)) // the caller may have left
}
