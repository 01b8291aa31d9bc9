package storefront

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
)

// logRequests writes a line per request, at DEBUG: an ordinary answer is not
// worth one by default.
func (s *service) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			if !s.log.Enabled(r.Context(), slog.LevelDebug) {
				return
			}
			status := cmp.Or(ww.Status(), statusClientClosed) // nothing written: the client hung up, or a simulator lost its reply
			route := cmp.Or(routeFor(r, r.Method), "other")
			s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route, "code", status, "took", time.Since(start))
		}()
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
