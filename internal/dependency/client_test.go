package dependency

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/retry"
)

func client(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	t.Helper()
	c, err := New(Config{
		Policy: Policy{Timeout: time.Second, Deadline: time.Minute, Breaker: breaker.Config{Failures: 1}},
		Dial:   dial,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// net/http goes on dialing when an attempt has ended.
func TestDialsDoNotGoOnForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dialing, most atomic.Int64
		c := client(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
			most.Store(max(most.Load(), dialing.Add(1)))
			defer dialing.Add(-1)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		_, err := c.Do(t.Context(), Request{URL: "http://192.0.2.1/"})
		if !errors.Is(err, ErrTimeout) {
			t.Errorf("Get = %v, want %v", err, ErrTimeout)
		}
		time.Sleep(time.Second + time.Nanosecond)
		if dialing.Load() != 0 || most.Load() != 2 {
			t.Errorf("%d dials left, at most %d at once, want 0 and 2", dialing.Load(), most.Load())
		}
	})
}

// A failed errgroup cancels its context with the error that failed it.
type uncomparable []error

func (uncomparable) Error() string { return "some errors" }

func TestCallersThatLeaveWithACauseOfTheirOwnAreNeutral(t *testing.T) {
	errBye := fmt.Errorf("bye: %w", ErrTimeout)
	cancelled := func(cause error) func(context.Context) (context.Context, context.CancelFunc) {
		return func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Millisecond, func() { cancel(cause) })
			return ctx, func() { cancel(nil) }
		}
	}
	for name, leave := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled":                                   cancelled(errBye),
		"cancelled by another call's answer":          cancelled(&Error{Outcome: Status4xx, Status: 402, Err: errors.New("402 Payment Required")}),
		"cancelled by another call's deadline":        cancelled(fmt.Errorf("%w after 1s", ErrDeadline)),
		"cancelled by errors that cannot be compared": cancelled(uncomparable{io.EOF}),
		"cancelled by a wrapped one":                  cancelled(struct{ error }{uncomparable{io.EOF}}),
		"out of time": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Millisecond, errBye)
		},
		"out of time without a cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				var outcomes []Outcome
				c.onAttempt = func(_ context.Context, a Attempt) { outcomes = append(outcomes, a.Outcome) }
				ctx, cancel := leave(t.Context())
				defer cancel()
				_, err := c.Do(ctx, Request{URL: "http://192.0.2.1/"})
				if err != ctx.Err() {
					t.Errorf("Do = %v, want %v", err, ctx.Err())
				}
				time.Sleep(time.Minute) // the dial ends
				if len(outcomes) != 1 || outcomes[0] != Cancelled {
					t.Errorf("outcomes %v, want one, cancelled", outcomes)
				}
				if got := c.Snapshot(); got.Breaker.State != breaker.Closed || got.Bulkhead.InUse != 0 {
					t.Errorf("%+v, want closed and no permit in use", got)
				}
			})
		})
	}
}

// What a dependency sees of an attempt, to the byte.
func TestTheRequestOnTheWire(t *testing.T) {
	ours, theirs := net.Pipe()
	head := make(chan string)
	go func() {
		buf := make([]byte, 4096)
		n, _ := theirs.Read(buf)
		head <- string(buf[:n])
		theirs.Close()
	}()
	c := client(t, func(context.Context, string, string) (net.Conn, error) { return ours, nil })
	go c.Do(t.Context(), Request{URL: "http://192.0.2.1/pay?x=1"})
	want := "GET /pay?x=1 HTTP/1.1\r\nHost: 192.0.2.1\r\nUser-Agent: Go-http-client/1.1\r\nAccept: application/json\r\n\r\n"
	if got := <-head; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Nobody's fault but ours: it is not tried again, and says nothing about the
// dependency.
func TestRequestThatCannotBeMade(t *testing.T) {
	attempts := 0
	c, err := New(Config{Policy: Policy{Timeout: time.Second, Deadline: time.Second}, OnAttempt: func(context.Context, Attempt) { attempts++ }})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []Request{{URL: "http://%zz"}, {URL: "http://192.0.2.1/", Method: "a b"}} {
		_, err := c.Do(t.Context(), req)
		if err == nil || errors.Is(err, ErrFailed) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%+v: %v, want another error than a failed call", req, err)
		}
	}
	if got := c.Snapshot(); attempts != 0 || got.Retry.Retries != 0 || got.Breaker.Failures != 0 {
		t.Errorf("%d attempts, %+v, want no attempt and no failure", attempts, got)
	}
}

// Another call was refused and took this one with it: that refusal is not this call's.
func TestCauseThatIsAnAnswerIsNotThisCalls(t *testing.T) {
	ours, theirs := net.Pipe()
	c := client(t, func(context.Context, string, string) (net.Conn, error) { return ours, nil })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		req, err := http.ReadRequest(bufio.NewReader(theirs))
		if err == nil {
			_, err = io.ReadAll(req.Body) // the charge is made
		}
		if err != nil {
			t.Error(err)
		}
		cancel(&Error{Outcome: Status4xx, Status: 402, Err: errors.New("402 Payment Required")})
	}()
	_, err := c.Do(ctx, Request{Method: "POST", URL: "http://192.0.2.1/", Body: []byte("{}")})
	if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || statusOf(err) != 0 {
		t.Errorf("Do = %v, want an unknown outcome and no status", err)
	}
}

// Whatever asks for an effect may have had it.
func TestUnknownOutcomeOfEachMethod(t *testing.T) {
	for method, want := range map[string]bool{"": false, "GET": false, "PUT": true, "PATCH": true, "DELETE": true, "POST": true} {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		c, err := New(Config{Policy: Policy{Timeout: time.Hour, Deadline: time.Hour, Retry: retry.Config{Attempts: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), Request{Method: method, URL: server.URL})
		if !errors.Is(err, ErrFailed) || errors.Is(err, ErrOutcomeUnknown) != want {
			t.Errorf("%q: %v, unknown outcome %v, want %v", method, err, !want, want)
		}
		server.Close()
	}
}

func TestLongestTimesDoNotOverflow(t *testing.T) {
	c, err := New(Config{
		Policy: Policy{Timeout: math.MaxInt64, Deadline: math.MaxInt64, Retry: retry.Config{Attempts: 1}},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if ctx.Err() != nil {
				t.Errorf("dialed with a context that had ended: %v", ctx.Err())
			}
			return nil, errors.New("dialed")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), Request{URL: "http://192.0.2.1/"}); err == nil || err.Error() != "dialed" {
		t.Errorf("Do = %v, want dialed", err)
	}
}

func TestPanicInDecodeIsAFailedAttempt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	defer server.Close()
	var outcomes []Outcome
	c, err := New(Config{
		Policy:    Policy{Timeout: time.Hour, Deadline: time.Hour},
		OnAttempt: func(_ context.Context, a Attempt) { outcomes = append(outcomes, a.Outcome) },
	})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want boom", p)
			}
		}()
		c.Do(t.Context(), Request{URL: server.URL, Decode: func([]byte) error { panic("boom") }})
	}()
	if got := c.Snapshot(); len(outcomes) != 1 || outcomes[0] != Undecodable || got.Breaker.Failures != 1 || got.Bulkhead.InUse != 0 {
		t.Errorf("outcomes %v, %+v, want one undecodable, a failure and no permit in use", outcomes, got)
	}
}

func TestWhatMayBeRepeated(t *testing.T) {
	for method, want := range map[string]bool{
		"": true, "GET": true, "HEAD": true, "PUT": true, "DELETE": true, "POST": false, "PATCH": false, "get": false, "OPTIONS": false,
	} {
		if got := (Request{Method: method}).idempotent(); got != want {
			t.Errorf("%q: %v, want %v", method, got, want)
		}
		if !(Request{Method: method, IdempotencyKey: "k"}).idempotent() {
			t.Errorf("%q with a key may be repeated", method)
		}
		if got, want := (Request{Method: method}).safe(), method == "" || method == "GET" || method == "HEAD"; got != want {
			t.Errorf("%q: safe %v, want %v", method, got, want)
		}
	}
}
