package storefront

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
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
			// What was answered before it was routed has its route all the same.
			route := chi.RouteContext(r.Context()).RoutePattern()
			if route == "" {
				route = cmp.Or(routeFor(r, r.Method), "other")
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

// logTransition writes a line per change of state; to open is worth a warning.
func (s *service) logTransition(name string, t breaker.Transition) {
	level := slog.LevelInfo
	if t.To == breaker.Open {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "breaker transition", "dependency", name, "from", t.From, "to", t.To)
}

// logGiveUp writes why a failed call was not tried again, at DEBUG.
func (s *service) logGiveUp(ctx context.Context, name, reason string, err error) {
	s.log.DebugContext(ctx, "gave up", "dependency", name, "reason", reason, "err", err)
}

// logAttempt writes a line per attempt, at DEBUG.
func (s *service) logAttempt(ctx context.Context, name string, a dependency.Attempt) {
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return // before anything is allocated
	}
	attrs := []any{"dependency", name, "outcome", a.Outcome, "took", a.Took}
	if a.Err != nil {
		attrs = append(attrs, "err", a.Err)
	}
	s.log.DebugContext(ctx, "attempt", attrs...)
}
