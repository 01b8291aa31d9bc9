package storefront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

const maxRequestBody = 64 << 10 // bytes

// readBody reads the whole body before the handler runs. net/http notices a
// hang-up only once the body has been read, and an answer would wait for the
// unread rest. The server's ReadTimeout bounds it in time.
func (s *service) readBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody { // nil where a test calls the handler itself
			body, err := bodyOf(w, r)
			if err != nil {
				w.Header().Set("Connection", "close") // or net/http would wait for the rest
				s.fail(w, r, err)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		next.ServeHTTP(w, r)
	})
}

func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	large := fmt.Errorf("%w: at most %d bytes", errTooLarge, maxRequestBody)
	if r.ContentLength > maxRequestBody {
		return nil, large // before "Expect: 100-continue" invites it
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
	var overrun *http.MaxBytesError
	var broken net.Error
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &overrun):
		return nil, large
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errTooSlow
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken):
		return nil, context.Canceled // the client hung up
	default:
		return nil, badRequest("the body: " + err.Error())
	}
}
