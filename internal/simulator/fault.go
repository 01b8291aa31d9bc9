package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/storefront/internal/ascii"
)

// The letters of a script.
const (
	succeed   = 'S'
	fail      = 'F' // answer Status
	hang      = 'H' // until the caller leaves
	reset     = 'R' // the connection
	malformed = 'M' // a body that is no JSON
	lost      = 'L' // do the work and lose the reply
)

const (
	letters       = "SFHRML"
	maxScript     = 64
	maxLatency    = 30 * time.Second
	maxRetryAfter = 64 // bytes
)

// Fault is what goes wrong with a dependency, exactly and repeatably.
type Fault struct {
	// Script has a letter for each call, 1 to 64 of them, and starts again at
	// its end: S succeeds, F answers Status, H hangs until the caller leaves,
	// R resets the connection, M answers a body that is no JSON, L does the
	// work and loses the reply. Empty means the dependency's own.
	Script string
	// Status of F, 400 to 599. 0 means 503.
	Status int
	// Latency comes before each answer, up to 30 s.
	Latency time.Duration
	// RetryAfter goes out with each F as it stands: up to 64 printable ASCII
	// characters, with no space at an end. Empty sends none.
	RetryAfter string
}

// ParseFault reads a Fault from the fields script, status, latency and retry_after of
// a form. One that is not given is the default. As status and retry_after need a
// failure to go with, they imply the script F. The error names the field that is wrong;
// Set checks the ranges.
func ParseFault(form url.Values) (Fault, error) {
	var f Fault
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if err := f.parse(name, form[name]); err != nil {
			return Fault{}, err
		}
	}
	if f.Status != 0 || f.RetryAfter != "" {
		f.Script = cmp.Or(f.Script, string(fail))
	}
	return f, nil
}

// parse leaves the ranges to withDefaults, which would take a 0 or nothing for a
// default.
func (f *Fault) parse(name string, values []string) (err error) {
	value := values[0]
	switch name {
	case "script":
		f.Script = value
	case "status":
		status, err := strconv.ParseUint(value, 10, 16) // which takes no sign
		if err != nil || status == 0 {
			return errStatus
		}
		f.Status = int(status)
	case "latency":
		if f.Latency, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("latency: %s is not a duration like 250ms or 2s", quoted(value))
		}
	case "retry_after":
		f.RetryAfter = value
	default:
		return fmt.Errorf("%s: unknown field; try script, status, latency or retry_after", quoted(name))
	}
	switch {
	case len(values) > 1:
		return fmt.Errorf("%s: given twice", name)
	case value == "":
		return fmt.Errorf("%s: must not be empty", name)
	}
	return nil
}

// withDefaults fills in what is missing, or names the field that is wrong.
func (f Fault) withDefaults(of Fault) (Fault, error) {
	f.Script = cmp.Or(f.Script, of.Script)
	f.Status = cmp.Or(f.Status, http.StatusServiceUnavailable)
	switch {
	case len(f.Script) > maxScript:
		return f, fmt.Errorf("script: %d letters are too many, 1 to %d", len(f.Script), maxScript)
	case strings.Trim(f.Script, letters) != "":
		return f, fmt.Errorf("script: %q must have only the letters S, F, H, R, M and L, in upper case", f.Script)
	case f.Status < 400 || f.Status > 599:
		return f, errStatus
	case f.Latency < 0 || f.Latency > maxLatency:
		return f, fmt.Errorf("latency: %v is out of range, 0s to %v", f.Latency, maxLatency)
	case f.RetryAfter != "" && !isHeaderValue(f.RetryAfter):
		return f, fmt.Errorf("retry_after: must be 1 to %d printable ASCII characters, the first and last of them visible", maxRetryAfter)
	}
	return f, nil
}

// isHeaderValue says whether net/http sends s as it stands.
func isHeaderValue(s string) bool {
	return len(s) <= maxRetryAfter && s == strings.TrimSpace(s) && ascii.Visible(strings.ReplaceAll(s, " ", ""), maxRetryAfter)
}

var errStatus = errors.New("status: must be a whole number from 400 to 599")

func (f Fault) fail(w http.ResponseWriter) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
}

// resetConnection makes the caller's next read fail with "connection reset".
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // not HTTP/1: as near as it gets
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // only the way it ends is at stake
	}
	_ = conn.Close() // the connection is gone either way
}

// discard is a reply that nobody will see.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}
