package storefront

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5/middleware"
)

// recoverPanic is to be deferred. It turns a panic into a 500 and a line in the log.
// What has begun to be answered is cut off instead: half an answer must not look
// whole.
func (s *service) recoverPanic(w middleware.WrapResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	if w.Status() != 0 {
		s.log.ErrorContext(r.Context(), "answer cut off", "path", r.URL.Path, "err", err)
		panic(http.ErrAbortHandler)
	}
	s.fail(w, r, err)
}
