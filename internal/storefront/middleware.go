package storefront

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"
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
			status, route := ww.Status(), chi.RouteContext(r.Context()).RoutePattern()
			if status == 0 {
				status = statusGone
			}
			if route == "" {
				route = "other"
			}
			s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", route, "code", status, "took", time.Since(start))
		}()
		next.ServeHTTP(ww, r)
	})
}

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

// dropBody reads the body that a GET has no use for: only then does net/http
// watch for a client that hangs up.
func (s *service) dropBody(next http.Handler) http.Handler {
	const most = 64 << 10 // bytes
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, most))
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			s.fail(w, r, fmt.Errorf("%w: at most %d bytes", errTooLarge, most))
		case err != nil:
			s.fail(w, r, badRequest("the body: "+err.Error()))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// noStore: every answer of a business route is one of a kind.
func noStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
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
