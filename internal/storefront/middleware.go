package storefront

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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

// readBody reads the whole body, at most 64 KiB, before the handler runs. net/http
// notices a hang-up only once the body has been read, and an answer would wait for
// the unread rest. The server's ReadTimeout bounds it in time.
func (s *service) readBody(next http.Handler) http.Handler {
	const maxRequestBody = 64 << 10 // bytes
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
		var tooLarge *http.MaxBytesError
		switch {
		case err == nil:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		case errors.As(err, &tooLarge):
			err = fmt.Errorf("%w: at most %d bytes", errTooLarge, maxRequestBody)
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = errTooSlow
		default:
			err = badRequest("the body: " + err.Error())
		}
		s.fail(w, r, err)
	})
}
