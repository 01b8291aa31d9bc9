package simulator

import (
	"fmt"
	"net/http"
)

// Flaky stands for a payment service on a bad day: two calls of three fail. Call n
// that succeeds answers {"call":n}; all callers share the count.
func Flaky() *Dependency {
	return newDependency(Fault{Script: "FFS", Status: http.StatusServiceUnavailable}, func(w http.ResponseWriter, _ *http.Request, call int) {
		writeJSON(w, []byte(fmt.Sprintf(`{"call":%d}`, call)))
	})
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
