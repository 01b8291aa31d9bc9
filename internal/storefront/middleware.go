package storefront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
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

// readBody reads the whole body before the handler: only then does net/http
// watch for a client that hangs up, and an answer would wait for a body that
// nobody has read. The server's ReadTimeout bounds it in time.
func (s *service) readBody(next http.Handler) http.Handler {
	const most = 64 << 10 // bytes
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		var tooLarge *http.MaxBytesError
		switch {
		case err == nil:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		case errors.As(err, &tooLarge):
			err = fmt.Errorf("%w: at most %d bytes", errTooLarge, most)
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = errTooSlow
		default:
			err = badRequest("the body: " + err.Error())
		}
		s.fail(w, r, err)
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
