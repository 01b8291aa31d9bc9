package storefront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
)

// call makes a request to a path of one of the simulators behind this service.
func (s *service) call(ctx context.Context, name, path string, req dependency.Request) ([]byte, error) {
	var err error
	if req.URL, err = ownURL(ctx, path); err != nil {
		return nil, err
	}
	return s.dependencies[name].Do(ctx, req)
}

// maxName is how long a SKU or an id may be, in bytes; a longer one is unknown.
const maxName = 64

// answered says whether err is an answer with this status.
func answered(err error, status int) bool {
	var e *dependency.Error
	return errors.As(err, &e) && e.Status == status
}

// explain says what failed in front of why, and how long an open breaker stays
// open.
func explain(what string, err error) error {
	var open *breaker.OpenError
	switch {
	case errors.As(err, &open):
		return retryIn(open.RetryAfter(), err)
	case errors.Is(err, dependency.ErrFailed), errors.Is(err, dependency.ErrDeadline):
		return fmt.Errorf("%s: %w", what, err)
	default:
		return err
	}
}

// errUnexpected is about JSON that is not what the route has.
var errUnexpected = errors.New("the response is not what was asked for")

// decode reads an answer into v, and checks with complete that nothing was
// missing.
func decode(body []byte, v any, complete func() bool) error {
	if json.Unmarshal(body, v) != nil || !complete() {
		return errUnexpected
	}
	return nil
}

// write sends a 200. It returns nil, so a handler can end on it: nobody is left
// to tell when a client does not take its answer.
func write(w http.ResponseWriter, contentType, body string) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store") // each answer is one of a kind
	_, _ = io.WriteString(w, body)
	return nil
}
