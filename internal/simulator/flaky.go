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
