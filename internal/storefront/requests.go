package storefront

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// observeRequests counts every request, writes a line for it at DEBUG (an ordinary
// answer is not worth one by default), and turns a panic into a 500. One middleware
// for all three: each would need to see the status, and each costs.
func (s *service) observeRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			took := time.Since(start)
			code := cmp.Or(ww.Status(), statusClientClosed) // nothing written: the client hung up, or a simulator lost its reply
			// chi has no pattern for what was answered before it was routed, or had
			// the wrong method.
			route := chi.RouteContext(r.Context()).RoutePattern()
			if route == "" {
				route = cmp.Or(knownRoute(r), "other")
			}
			s.metrics.Request(route, code, took)
			if s.log.Enabled(r.Context(), slog.LevelDebug) {
				s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route, "code", code, "took", took)
			}
		}()
		defer s.recoverPanic(ww, r)
		next.ServeHTTP(ww, r)
	})
}

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
