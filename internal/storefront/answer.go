package storefront

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/bulkhead"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/shed"
)

const (
	textType = "text/plain; charset=utf-8"
	jsonType = "application/json"
)

// statusClientClosed is nginx's "client closed request": no answer went out. It is logged
// and counted, never sent.
const statusClientClosed = 499

var (
	errNotFound   = errors.New("no such route; try /checkout, /limited, /slow, /stock/mug, /profile/ada, POST /charge, /faults or /status")
	errMethod     = errors.New("method not allowed")
	errDraining   = errors.New("draining")
	errBadRequest = errors.New("bad request")
	errTooLarge   = errors.New("the body is too large")
	errTooSlow    = errors.New("the body is too slow")
)

// answers maps errors to statuses. The first match (errors.Is) wins; an error in
// no row is a 500 without its text.
var answers = []answerRow{
	{context.Canceled, statusClientClosed, ""},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, ""}, // of middleware around New's handler
	{errBadRequest, http.StatusBadRequest, ""},
	{errControls, http.StatusForbidden, ""},
	{errForeignHost, http.StatusForbidden, "use localhost or an IP address, or start the server with -controls on"},
	{errCrossOrigin, http.StatusForbidden, ""},
	{errNotFound, http.StatusNotFound, ""},
	{errUnknownSKU, http.StatusNotFound, ""},
	{errUnknownProfile, http.StatusNotFound, ""},
	{errUnknownDependency, http.StatusNotFound, ""},
	{errMethod, http.StatusMethodNotAllowed, "curl sends -d as a POST: -X names another method"},
	{errTooSlow, http.StatusRequestTimeout, ""},
	{errTooLarge, http.StatusRequestEntityTooLarge, ""},
	{errKeyReused, http.StatusUnprocessableEntity, "send a new key with a new charge"},
	{ratelimit.ErrLimited, http.StatusTooManyRequests, "wait for the next token"},
	{errDraining, http.StatusServiceUnavailable, "the server is stopping: ask another instance"},
	{shed.ErrBusy, http.StatusServiceUnavailable, "wait until a request under way is done"},
	{bulkhead.ErrFull, http.StatusServiceUnavailable, "wait until a call under way is done"},
	{errGateway, http.StatusServiceUnavailable, "this request charged nothing: send it again after the wait, with the same Idempotency-Key if it has one"},
	{breaker.ErrOpen, http.StatusServiceUnavailable, "the dependency is left alone for now: the first call after the wait is the probe"},
	{errUnknown, http.StatusBadGateway, "it may have been charged: repeat it with the same Idempotency-Key or, if it had none, look at /upstream/payments/charges before you pay again"},
	{dependency.ErrDeadline, http.StatusGatewayTimeout, ""},
	{dependency.ErrFailed, http.StatusBadGateway, ""},
	{errNoAddress, http.StatusInternalServerError, ""},
}

var noStore = []string{"no-store"} // never written to

// write sends a 200. It returns nil, so a handler can end on it: nobody is left
// to tell when a client does not take its answer.
func write(w http.ResponseWriter, contentType, body string) error {
	w.Header().Set("Content-Type", contentType)
	w.Header()["Cache-Control"] = noStore // each answer is one of a kind
	_, _ = io.WriteString(w, body)
	return nil
}

// encode sends a 200 with v as JSON.
func encode(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(w, jsonType, string(body))
}

// handle adapts a handler that returns an error instead of answering it.
func (s *service) handle(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		switch {
		case err == nil:
		case r.Context().Err() == context.Canceled:
			s.fail(w, r, context.Canceled) // whatever it was, the caller has hung up
		default:
			s.fail(w, r, err)
		}
	}
}

// answerRow is what an error gets.
type answerRow struct {
	err    error
	status int
	hint   string // what to do next
}

// answerFor is the row of err, that of an internal error if it has none.
func answerFor(err error) answerRow {
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return a
		}
	}
	return answerRow{status: http.StatusInternalServerError}
}

// fail answers err: with the row's status and the error's own text, as one line
// of text or as a problem (RFC 9457).
func (s *service) fail(w http.ResponseWriter, r *http.Request, err error) {
	a := answerFor(err)
	p := problem{Type: "about:blank", Status: a.status, Title: http.StatusText(a.status), Detail: err.Error(), Hint: a.hint}
	switch {
	case a.err == nil:
		p.Detail = "internal error"
		s.log.ErrorContext(r.Context(), "internal error", "method", r.Method, "path", r.URL.Path, "err", err)
	case p.Status == statusClientClosed:
		// A half-closed client must not get net/http's implicit 200.
		panic(http.ErrAbortHandler)
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusServiceUnavailable:
		p.RetryAfter = 1
		var later *retryError
		if errors.As(err, &later) {
			p.RetryAfter = max(1, wholeSeconds(later.after))
		}
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Status == http.StatusTooManyRequests {
		p.Type = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	}

	body, contentType := []byte(p.Detail), textType
	if wantsProblem(r) {
		body, _ = json.Marshal(p) // strings and numbers always encode
		contentType = "application/problem+json"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // nobody is left to tell
}

// problem is an RFC 9457 problem.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
	Hint       string `json:"hint,omitempty"`
}

// wantsProblem says whether the client names one of the JSON types in Accept
// (RFC 9110, §12.5.1) with a weight above 0. A wildcard is no such wish.
func wantsProblem(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || name != "application/json" && name != "application/problem+json" {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if params["q"] == "" || err == nil && q > 0 {
			return true
		}
	}
	return false
}

// retryError gives an error the Retry-After of its 429 or 503.
type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

func retryIn(after time.Duration, err error) error { return &retryError{err, after} }

// wholeSeconds rounds up, so that whoever waits that long has waited enough.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// badRequest is a 400 with this text.
type badRequest string

func (e badRequest) Error() string      { return string(e) }
func (badRequest) Is(target error) bool { return target == errBadRequest }
