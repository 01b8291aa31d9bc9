package dependency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxBody = 8 << 20 // bytes; a longer answer is undecodable

	// What an error's body may cost to reuse the connection.
	maxDrain  = 64 << 10 // bytes
	drainTime = 50 * time.Millisecond
)

// Attempt is one request on the wire that has ended.
type Attempt struct {
	Outcome Outcome
	Status  int   // of the answer; 0 if none came
	Err     error // nil for OK
	Took    time.Duration
}

// attempt makes one request and reads the whole answer. It sets unknown where no
// answer says whether the request has taken effect.
func (c *Client) attempt(ctx context.Context, r Request, unknown *bool) (body []byte, err error) {
	req, err := r.http(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	start, status := time.Now(), 0
	defer func() {
		// Only an error's status is a refusal.
		if err != nil && statusOf(err) < 400 && mayHaveEffect(req) {
			*unknown = true
		}
		a := Attempt{Outcome: OutcomeOf(err), Status: status, Err: err, Took: time.Since(start)}
		r.Trace.attempted(a)
		c.onAttempt(ctx, a)
	}()

	resp, err := c.transport.RoundTrip(req) // http.Client would look into redirects
	if err != nil {
		return nil, c.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	status = resp.StatusCode
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		drain(resp.Body)
		return nil, statusError(resp)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, c.noAnswer(ctx, fmt.Errorf("reading the response: %w", err))
	}
	err = errPanicked // unless check returns
	if bad := r.check(body); bad != nil {
		return nil, &Error{Outcome: Undecodable, Err: bad}
	}
	return body, nil
}

// noAnswer is the error of an attempt that brought no answer: what ended its
// context, or a fault of the connection.
func (c *Client) noAnswer(ctx context.Context, err error) error {
	switch context.Cause(ctx) {
	case nil:
		return &Error{Outcome: Connection, Err: err}
	case errByTimeout:
		return &Error{Outcome: Timeout, Err: c.errTimeout}
	case errByDeadline:
		return c.errDeadline
	default:
		return ctx.Err() // the caller went away, whatever the cause it gives
	}
}

// drain reads what is left of an answer: a connection is reused only after that.
// It closes one that goes on for too long, in bytes or in time. The attempt's
// context does not end every read: not that after a 101, for one.
func drain(body io.ReadCloser) {
	// Errors only mean that the connection cannot be reused.
	late := time.AfterFunc(drainTime, func() { _ = body.Close() })
	defer late.Stop()
	_, _ = io.CopyN(io.Discard, body, maxDrain)
}

// statusError is the error of an answer other than 2xx.
func statusError(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, Outcome: Undecodable}
	switch {
	case e.Status >= 500:
		e.Outcome = Status5xx
	case e.Status >= 400:
		e.Outcome = Status4xx
	}
	e.Err = errors.New(strings.TrimSpace(fmt.Sprint(e.Status, " ", http.StatusText(e.Status))))
	e.retryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}

var errPanicked error = &Error{Outcome: Undecodable, Err: errors.New("decoding the response panicked")}

func (r Request) check(body []byte) error {
	switch {
	case len(body) == 0:
		return errors.New("the response is empty")
	case len(body) > maxBody:
		return fmt.Errorf("the response is longer than %d bytes", maxBody)
	case !json.Valid(body):
		return errors.New("the response is not JSON")
	case r.Decode != nil:
		return r.Decode(body)
	}
	return nil
}
