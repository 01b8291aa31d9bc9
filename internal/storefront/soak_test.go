package storefront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSoak serves a mixed load on real sockets while everything goes wrong at random:
// dependencies, hang-ups, panics, requests that are never finished. Then what was taken
// must be back, and what was counted must add up. `make soak` runs it.
func TestSoak(t *testing.T) {
	wanted := os.Getenv("STOREFRONT_SOAK")
	if wanted == "" {
		t.Skip("takes a minute: run make soak, or set STOREFRONT_SOAK to a duration")
	}
	duration, err := time.ParseDuration(wanted)
	if err != nil || duration < 10*time.Second {
		t.Fatalf("STOREFRONT_SOAK is %q, want a duration like 1m, at least 10s: less does not see everything", wanted)
	}
	for name, policy := range policies { // so that the breakers open often
		t.Cleanup(func() { policies[name] = policy })
		policy.Breaker.Cooldown = 200 * time.Millisecond
		policies[name] = policy
	}

	before := held(t)
	log := &soakLog{Handler: slog.DiscardHandler}
	s, err := newService(Config{SlowWork: 20 * time.Millisecond, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	var ln countingListener
	if ln.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, &ln) }()

	clients := newSoakClients(ln.Addr().String())
	memory := func(d time.Duration) int {
		clients.run(t, d)
		clients.wantIdle(t, s)
		runtime.GC()
		runtime.GC() // the first only moves what is in a sync.Pool aside
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	warm := memory(duration / 5)
	end := memory(duration - duration/5)
	t.Logf("heap in use: %d KiB after a fifth, %d KiB at the end", warm>>10, end>>10)
	if end > warm+4<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", warm, end)
	}
	clients.wantAddedUp(t, s, log)

	stop()
	if err := <-served; err != nil {
		t.Errorf("serve = %v", err)
	}
	clients.http.CloseIdleConnections()
	var after resources
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if after = held(t); after.goroutines <= before.goroutines && after.files <= before.files && ln.open.Load() == 0 {
			break
		}
	}
	t.Logf("%d connections accepted; before and after: %+v, %+v", ln.accepted.Load(), before, after)
	if after.goroutines > before.goroutines || after.files > before.files || ln.open.Load() != 0 {
		stacks := make([]byte, 1<<20)
		t.Errorf("not all is back: before %+v, after %+v, %d connections open\n%s", before, after, ln.open.Load(), stacks[:runtime.Stack(stacks, true)])
	}
	if complaints := log.complaints(); len(complaints) > 0 {
		t.Errorf("the log has\n%s", strings.Join(complaints, "\n"))
	}
}

// wantIdle waits until the server is done with all that was asked of it.
func (c *soakClients) wantIdle(t *testing.T, s *service) {
	t.Helper()
	var got, want int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		got, want = 0, 0
		for code, n := range soakSeries(s).requests {
			if !simulated(code.route) {
				got += n
			}
		}
		for _, n := range c.answered {
			want += n
		}
		for _, n := range c.left {
			want += n
		}
		if got == want && s.inFlight.Snapshot().InUse == 0 {
			return
		}
	}
	t.Fatalf("%d requests counted, %d made; %d in flight", got, want, s.inFlight.Snapshot().InUse)
}

// wantAddedUp compares what the server has counted with what the clients saw, and with
// itself. Where the client did not stay for the answer, any code will do, once.
func (c *soakClients) wantAddedUp(t *testing.T, s *service, log *soakLog) {
	t.Helper()
	got := soakSeries(s)
	total, unseen := map[string]int{}, map[string]int{} // by route
	panics := 0
	for code, n := range got.requests {
		total[code.route] += n
		if simulated(code.route) {
			continue
		}
		unseen[code.route] += n - c.answered[code]
		if n < c.answered[code] {
			t.Errorf("%+v: counted %d times, seen %d times", code, n, c.answered[code])
		}
		if code.code == 500 {
			panics += n
		}
	}
	for code, n := range c.answered {
		if got.requests[code] == 0 {
			t.Errorf("%+v: seen %d times, never counted", code, n)
		}
	}
	for route, n := range unseen {
		if n != c.left[route] {
			t.Errorf("%s: %d requests ended unseen, %d clients left", route, n, c.left[route])
		}
	}
	if panics == 0 || panics != log.panics() {
		t.Errorf("%d answers with 500 for %d panics, want as many, and some", panics, log.panics())
	}

	// A client that leaves early enough is gone before it is decided on, or called for.
	decided := got.sum("ratelimit_decisions_total")
	if early := total["/limited"] - decided; early < 0 || early > got.requests[routeCode{"/limited", 499}] {
		t.Errorf("%d decisions on %d requests to /limited", decided, total["/limited"])
	}
	for name, from := range map[string]struct{ route, simulator string }{
		flaky:     {"/checkout", "/flaky"},
		inventory: {"/stock/{sku}", "/upstream/inventory/stock/{sku}"},
		payments:  {"/charge", "/upstream/payments/charge"},
		profiles:  {"/profile/{id}", "/upstream/profiles/{id}"},
	} {
		of := strconv.Quote(name)
		calls := got.sum("dependency_call_duration_seconds_count", of) + got.sum("circuit_breaker_rejected_total", of) +
			got.sum("bulkhead_rejected_total", of) + got.requests[routeCode{from.route, 500}] + got.requests[routeCode{from.route, 408}]
		if early := total[from.route] - calls; early < 0 || early > got.requests[routeCode{from.route, 499}] {
			t.Errorf("%s: %d calls, refusals and panics for %d requests", name, calls, total[from.route])
		}
		attempts := got.sum("dependency_attempts_total", of)
		if n := s.dependencies[name].Snapshot().Retry.Attempts; uint64(attempts) != n {
			t.Errorf("%s: %d attempts by outcome, %d by /status", name, attempts, n)
		}
		// An attempt that was given up, or had no connection, may not have arrived.
		lost := attempts - total[from.simulator]
		if most := got.sum("dependency_attempts_total", of, "cancelled") + got.sum("dependency_attempts_total", of, "timeout") +
			got.sum("dependency_attempts_total", of, "connection"); lost < 0 || lost > most {
			t.Errorf("%s: %d attempts, %d arrived, at most %d may be lost", name, attempts, total[from.simulator], most)
		}
		opened := got.sum("circuit_breaker_transitions_total", of, `from="closed"`)
		if opened == 0 || got.requests[routeCode{from.route, 200}] == 0 || got.requests[routeCode{from.route, 499}] == 0 {
			t.Errorf("%s: the breaker opened %d times; answers %v: not everything was tried", name, opened, got.requests)
		}
		t.Logf("%-9s %6d requests, %6d attempts, opened %d times", name, total[from.route], attempts, opened)
	}
	for _, code := range []routeCode{{"/limited", 200}, {"/limited", 429}, {"/slow", 200}, {"/slow", 503}, {"/slow", 499}, {"/events", 200}, {"/charge", 408}} {
		if got.requests[code] == 0 {
			t.Errorf("%+v: not tried", code)
		}
	}
	t.Logf("/limited   %6d requests; /slow %d; panics %d", total["/limited"], total["/slow"], panics)
}

// simulated says whether a route is one of the dependencies, which no client asks.
func simulated(route string) bool {
	return route == "/flaky" || strings.HasPrefix(route, "/upstream/")
}

// counts are the series of /metrics, those of the requests by route and code.
type counts struct {
	series   map[string]string
	requests map[routeCode]int
}

// routeCode is a request as the server counts it.
type routeCode struct {
	route string
	code  int
}

// soakSeries reads them past the server, or that would be one more request.
func soakSeries(s *service) counts {
	rec := httptest.NewRecorder()
	s.metrics.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	c := counts{seriesOf(rec.Body.String()), map[routeCode]int{}}
	for name := range c.series {
		var a routeCode
		if _, err := fmt.Sscanf(name, "http_requests_total{code=\"%d\",route=%q}", &a.code, &a.route); err == nil {
			c.requests[a] = c.sum(name)
		}
	}
	return c
}

// sum adds up the series of a name that have all these labels.
func (c counts) sum(name string, labels ...string) (sum int) {
series:
	for series, value := range c.series {
		if !strings.HasPrefix(series, name) {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(series, label) {
				continue series
			}
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			panic(err) // of our own /metrics
		}
		sum += int(n)
	}
	return sum
}

// resources are what a process must give back.
type resources struct{ goroutines, files int }

func held(t *testing.T) resources {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil && !errors.Is(err, os.ErrNotExist) { // not every system has it
		t.Fatal(err)
	}
	return resources{runtime.NumGoroutine(), len(files)}
}

// countingListener knows how many of its connections are open.
type countingListener struct {
	net.Listener
	accepted, open atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	l.open.Add(1)
	return &countedConn{TCPConn: conn.(*net.TCPConn), closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type countedConn struct {
	*net.TCPConn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.TCPConn.Close()
}

// soakLog panics on one attempt of a hundred, in the innermost layer, and keeps what should
// not be said: errors other than those panics, and complaints of net/http.
type soakLog struct {
	slog.Handler
	mu     sync.Mutex
	thrown int      // guarded by mu
	heard  []string // guarded by mu
}

func (*soakLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *soakLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Message == "attempt" && rand.IntN(100) == 0 {
		l.thrown++
		panic(soakPanic)
	}
	said := r.Message
	r.Attrs(func(a slog.Attr) bool {
		said += " " + a.String()
		return true
	})
	if strings.HasPrefix(said, "http: ") || r.Level >= slog.LevelError && !strings.Contains(said, soakPanic) {
		l.heard = append(l.heard, said)
	}
	return nil
}

const soakPanic = "a log handler that panics"

func (l *soakLog) panics() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.thrown
}

func (l *soakLog) complaints() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard
}
