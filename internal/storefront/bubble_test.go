package storefront

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/simulator"
	"example.com/storefront/internal/transcript"
)

// world is a whole service under a fake clock: Serve with its http.Server, a
// client, and a network that joins them and any stand-in for a dependency.
type world struct {
	*testing.T
	start   time.Time
	network memnet.Network
	client  *http.Client
	log     transcript.Buffer
	service *service // to look inside
	stop    func()   // begins the drain
	served  chan error
	cleanup []func() error
	stuck   bool // the drain may run out of time
}

const self = "http://127.0.0.1:3000"

// inBubble runs test against a service with this config, and drains it.
func inBubble(t *testing.T, cfg Config, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, start: time.Now(), served: make(chan error, 1)}
		w.client = &http.Client{Transport: &http.Transport{DialContext: w.network.DialContext}}
		if cfg.Log == nil {
			cfg.Log = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		ln, err := w.network.Listen("tcp", "127.0.0.1:3000")
		if err != nil {
			t.Fatal(err)
		}
		w.service, err = newService(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		w.stop = stop
		go func() { w.served <- w.service.serve(ctx, ln) }()

		// Deferred, so that a test that gives up leaves the bubble too.
		defer func() {
			for _, close := range w.cleanup {
				close()
			}
			w.client.CloseIdleConnections()
			stop()
			if err := <-w.served; err != nil && !(w.stuck && errors.Is(err, ErrDrainTimeout)) {
				t.Errorf("Serve = %v", err)
			}
			// net/http's own complaints: a second status, a write after the end.
			if log := w.log.String(); strings.Contains(log, `msg="http: `) {
				t.Errorf("the server complained:\n%s", log)
			}
		}()
		test(w)
	})
}

// answer is what a test compares: the status and the body.
type answer struct {
	status int
	body   string
	header http.Header
	closes bool // Connection: close
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// get asks for a path of the service, or a whole URL.
func (w *world) get(target string, header ...string) answer {
	w.Helper()
	return w.send(w.Context(), http.MethodGet, target, header...)
}

// send makes a request with header lines like "X-API-Key: k1". Status 0 is a
// request that got no answer; the body is the reason.
func (w *world) send(ctx context.Context, method, target string, header ...string) answer {
	w.Helper()
	return w.sendBody(ctx, method, target, nil, header...)
}

func (w *world) sendBody(ctx context.Context, method, target string, content io.Reader, header ...string) answer {
	w.Helper()
	if strings.HasPrefix(target, "/") {
		target = self + target
	}
	req, err := http.NewRequestWithContext(ctx, method, target, content)
	if err != nil {
		w.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Errorf("%s %s: reading the answer: %v", method, target, err)
	}
	return answer{resp.StatusCode, string(body), resp.Header, resp.Close}
}

func (w *world) post(path, body string, header ...string) answer {
	w.Helper()
	return w.sendBody(w.Context(), http.MethodPost, path, strings.NewReader(body), header...)
}

// fault puts a fault in force.
func (w *world) fault(name string, f simulator.Fault) {
	w.Helper()
	if _, err := w.service.simulated[name].Set(f); err != nil {
		w.Fatal(err)
	}
}

// intercept answers the requests for a path in place of the service.
func (w *world) intercept(path string, h http.HandlerFunc) {
	served := w.service.Handler
	w.service.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			h(rw, r)
			return
		}
		served.ServeHTTP(rw, r)
	})
}

// says answers 200 with this body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

// snapshot is the client of a dependency at this moment.
func (w *world) snapshot(name string) dependency.Snapshot {
	return w.service.dependencies[name].Snapshot()
}

// begin sends a GET in the background.
func (w *world) begin(ctx context.Context, target string) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- w.send(ctx, http.MethodGet, target) }()
	synctest.Wait()
	return answers
}

func (w *world) want(got answer, want string) {
	w.Helper()
	if got.String() != want {
		w.Errorf("at %v: got %q, want %q", time.Since(w.start), got, want)
	}
}

// standIn is a dependency of a test's own.
type standIn struct {
	requests, connections atomic.Int64
}

// dependencyURL is where the service finds a stand-in: set Config.FlakyURL to it.
const dependencyURL = "http://10.0.0.1:80/pay"

// serveDependency serves a stand-in there until the test ends.
func (w *world) serveDependency(h http.HandlerFunc) *standIn {
	w.Helper()
	ln, err := w.network.Listen("tcp", "10.0.0.1:80")
	if err != nil {
		w.Fatal(err)
	}
	d := &standIn{}
	srv := &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			d.requests.Add(1)
			h(rw, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				d.connections.Add(1)
			}
		},
	}
	go srv.Serve(ln)
	w.cleanup = append(w.cleanup, srv.Close)
	return d
}

// status answers with a status and an empty body.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// takes answers {} after a while, or nothing if the caller has left by then.
func takes(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			io.WriteString(w, "{}")
		case <-r.Context().Done():
		}
	}
}

// hang answers nothing until the caller has left.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// step is one row of a timeline.
type step struct {
	at   time.Duration // since the start
	get  string
	want string
}

func (w *world) timeline(steps ...step) {
	w.Helper()
	for _, s := range steps {
		time.Sleep(time.Until(w.start.Add(s.at)))
		w.want(w.get(s.get), s.want)
	}
}

// dial opens a raw connection to the service.
func (w *world) dial() net.Conn {
	conn, err := w.network.DialContext(w.Context(), "tcp", "127.0.0.1:3000")
	if err != nil {
		w.Fatal(err)
	}
	w.cleanup = append(w.cleanup, conn.Close)
	return conn
}

// raw sends a request over a connection of its own, as it stands.
func (w *world) raw(request, header, body string) answer {
	w.Helper()
	conn := w.dial()
	defer conn.Close()
	go fmt.Fprintf(conn, "%s HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s", request, header, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Error(err)
	}
	return answer{resp.StatusCode, string(text), resp.Header, resp.Close}
}

// drop reads until the other side closes.
func drop(conn net.Conn) {
	buf := make([]byte, 1024)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// quiet is for tests that do not look at the log.
var quiet = slog.New(slog.DiscardHandler)

// withLocalAddr is a context as of a request that came in at addr.
func withLocalAddr(ctx context.Context, addr net.Addr) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, addr)
}
