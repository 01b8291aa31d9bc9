package dependency

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// Request is what every attempt of a call sends.
type Request struct {
	// Method is GET if empty. An answer without a body is Undecodable, so HEAD
	// and the status 204 are no use here.
	Method string
	URL    string // http or https
	Body   []byte // JSON; empty sends none
	// IdempotencyKey is a name by which the dependency recognises a repeat, in
	// visible ASCII; it goes out as Idempotency-Key, quoted. With it every
	// method may be repeated (draft-ietf-httpapi-idempotency-key-header).
	IdempotencyKey string
	// Decode takes the body of an answer. Its error says why that is no use,
	// and makes the attempt Undecodable. nil takes any JSON.
	Decode func(body []byte) error
	// Without leaves out layers, to see what each is worth.
	Without Without
	// Trace is told what the call does. nil ignores it.
	Trace *Trace
}

// http is a fresh request for one attempt. The body says whether it was sent,
// unless the request is safe: then nobody needs to know.
func (r Request) http(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, nil)
	if err != nil {
		return nil, err
	}
	// net/http sends a request again, unasked, when a reused connection breaks
	// and there is no body, or one it can rewind. This one cannot be rewound.
	body := bytes.NewReader(r.Body)
	req.Body = io.NopCloser(body) // which net/http knows: it costs no write of its own
	if !r.safe() {
		req.Body = &sentBody{Reader: body}
	}
	if len(r.Body) > 0 {
		req.ContentLength = int64(len(r.Body))
		req.Header.Set("Content-Type", "application/json")
	} else {
		// Spares the goroutine and the timer with which net/http would find
		// out that it is empty; nothing of it is sent.
		req.TransferEncoding = identity
	}
	req.Header.Set("Accept", "application/json")
	if r.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", strconv.Quote(r.IdempotencyKey))
	}
	return req, nil
}

var identity = []string{"identity"} // never written to

// sentBody knows whether net/http has begun to send it: a request whose body was
// never read is one that the dependency never saw whole.
type sentBody struct {
	io.Reader
	sent atomic.Bool
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.sent.Store(true)
	return b.Reader.Read(p)
}

func (*sentBody) Close() error { return nil }

// stop says why a call gets no further attempt, whatever its error is.
func (r Request) stop(opened func() bool) func() string {
	return func() string {
		switch {
		case !r.idempotent():
			return "a repetition could take effect twice"
		case opened():
			return "the breaker has opened"
		}
		return ""
	}
}

// idempotent says whether a repetition has no effect of its own (RFC 9110,
// §9.2.2).
func (r Request) idempotent() bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.IdempotencyKey != ""
}

// mayHaveEffect says whether the request can have taken effect, now that there
// was no answer.
func mayHaveEffect(req *http.Request) bool {
	body, ok := req.Body.(*sentBody)
	return ok && body.sent.Load()
}

// safe says whether the request asks for no effect at all (RFC 9110, §9.2.1).
func (r Request) safe() bool {
	return r.Method == "" || r.Method == http.MethodGet || r.Method == http.MethodHead
}
