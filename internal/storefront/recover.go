package storefront

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5/middleware"
)

// recoverPanics turns a panic into a 500 and a line in the log. What has begun
// to be answered is cut off instead: half an answer must not look whole.
func (s *service) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if ww, ok := w.(middleware.WrapResponseWriter); ok && ww.Status() != 0 {
				s.log.ErrorContext(r.Context(), "answer cut off", "path", r.URL.Path, "err", err)
				panic(http.ErrAbortHandler)
			}
			s.fail(w, r, err)
		}()
		next.ServeHTTP(w, r)
	})
}
