// Package simulator acts out the dependencies that the storefront calls.
package simulator

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// Flaky stands for a payment service on a bad day: two calls of three fail.
// Its zero value is ready; all callers share its count.
type Flaky struct{ calls atomic.Int64 }

// ServeHTTP counts call n, from 1, and answers 200 with {"call":n} if 3 divides
// n, else 503 with an empty body.
func (f *Flaky) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := f.calls.Add(1)
	if n%3 != 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"call":%d}`, n)
}
