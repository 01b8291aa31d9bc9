package storefront

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/storefront/internal/ascii"
	"example.com/storefront/internal/shed"
)

const (
	maxSenders = 8  // at once
	maxSent    = 50 // requests of one
)

// sending is what to send.
type sending struct {
	method, body string
	url          string
	count        int
	key          string // X-API-Key and Idempotency-Key; empty sends none
}

// sendable has what can be sent, by its path.
var sendable = map[string]sending{
	"/checkout":    {method: http.MethodGet},
	"/stock/mug":   {method: http.MethodGet},
	"/charge":      {method: http.MethodPost, body: `{"amount":1250,"token":"tok_visa"}`},
	"/profile/ada": {method: http.MethodGet},
	"/limited":     {method: http.MethodGet},
	"/slow":        {method: http.MethodGet},
}

// send sends requests to this very service, all at once, as a browser would not: it has
// six connections to a host. Each answer becomes a line as it comes: its status and, unless
// it is a plain 200, what it says.
func (s *service) send(w http.ResponseWriter, r *http.Request) error {
	what, err := sendingOf(r)
	if err != nil {
		return err
	}
	err = s.senders.Do(r.Context(), shed.DefaultUrgency, func() error {
		w.Header().Set("Content-Type", textType)
		w.Header()["Cache-Control"] = noStore
		controller := http.NewResponseController(w)
		lines := make(chan string, what.count)
		for range what.count {
			go func() { lines <- s.sendOne(r.Context(), what) }()
		}
		for range what.count { // also once the client has left: the answers come at once then
			_, _ = fmt.Fprintln(w, <-lines)
			_ = controller.Flush() // an error would be one for the next write, too
		}
		return nil
	})
	s.recordShed(err, "/send", "senders")
	return err
}

// sendingOf reads the fields route, count, without and key of the body.
func sendingOf(r *http.Request) (what sending, err error) {
	form, err := formOf(r)
	if err != nil {
		return what, err
	}
	for name, values := range form {
		switch {
		case !slices.Contains([]string{"route", "count", "without", "key"}, name):
			return what, badRequest(fmt.Sprintf("%.40q: unknown field; try route, count, without or key", name))
		case len(values) > 1:
			return what, badRequest(name + ": given twice")
		}
	}
	route := form.Get("route")
	what, ok := sendable[route]
	if !ok {
		return what, badRequest(fmt.Sprintf("route: %.40q is not /checkout, /stock/mug, /charge, /profile/ada, /limited or /slow", route))
	}
	what.count, what.key = 1, form.Get("key")
	if form.Has("count") {
		count, err := strconv.ParseUint(form.Get("count"), 10, 16) // which takes no sign
		if err != nil || count < 1 || count > maxSent {
			return what, badRequest(fmt.Sprintf("count: must be a whole number from 1 to %d", maxSent))
		}
		what.count = int(count)
	}
	if form.Has("key") && !ascii.Visible(what.key, 128) {
		return what, badRequest("key: must be 1 to 128 visible ASCII characters")
	}
	if what.url, err = ownURL(r.Context(), route); err != nil {
		return what, err
	}
	if form.Has("without") {
		if _, err := parseWithout(form["without"]); err != nil {
			return what, err
		}
		what.url += "?without=" + url.QueryEscape(form.Get("without"))
	}
	return what, nil
}

// sendOne sends one request, and says in a line what became of it.
func (s *service) sendOne(ctx context.Context, what sending) string {
	req, err := http.NewRequestWithContext(ctx, what.method, what.url, strings.NewReader(what.body))
	if err != nil {
		return "no answer: " + err.Error()
	}
	if what.key != "" {
		req.Header.Set("X-API-Key", what.key)
		req.Header.Set("Idempotency-Key", what.key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096)) // the answers to these are short
	switch {
	case err != nil:
		return "no answer: " + err.Error()
	case resp.StatusCode == http.StatusOK && resp.Header.Get("Storefront-Fallback") != "":
		return "200 fallback: " + resp.Header.Get("Storefront-Fallback")
	case resp.StatusCode == http.StatusOK:
		return "200"
	}
	line, _, _ := bytes.Cut(body, []byte("\n"))
	return fmt.Sprintf("%d %.120s", resp.StatusCode, line)
}

// newSendingClient makes every request on its own account: without a connection of its own
// it would wait for another to end.
func newSendingClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         dial,
		MaxIdleConnsPerHost: maxSenders * maxSent,
		IdleConnTimeout:     30 * time.Second,
		// No Proxy: it is this very service.
	}}
}
