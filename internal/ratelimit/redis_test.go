package ratelimit

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/redistest"
)

// openRedis waits long: how well Redis answers is this machine's business.
func openRedis(t testing.TB, url string) *Redis {
	t.Helper()
	r, err := OpenRedis(RedisConfig{URL: url, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func shared(t testing.TB, r *Redis, cfg Config) *Shared {
	t.Helper()
	l, err := NewShared(r, "test", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acted is a Redis for tests with a fake clock, where a real one cannot be: it says that
// there are 2 tokens more, or does what goes wrong.
type acted struct {
	network  memnet.Network
	listener net.Listener
	latency  time.Duration // before each reply
	hung     atomic.Bool   // no reply at all
	trickle  time.Duration // before each byte of a reply
	reply    string        // to a script; empty: 2 tokens more

	dialed, asked atomic.Int64

	mu      sync.Mutex
	conns   []net.Conn // guarded by mu
	changes []string   // guarded by mu; what OnChange was told, and when
}

func (a *acted) listen(t *testing.T) {
	t.Helper()
	var err error
	if a.listener, err = a.network.Listen("tcp", "127.0.0.1:6379"); err != nil {
		t.Fatal(err)
	}
	go func(ln net.Listener) {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			a.dialed.Add(1)
			a.mu.Lock()
			a.conns = append(a.conns, conn)
			a.mu.Unlock()
			go a.serve(conn)
		}
	}(a.listener)
}

// kill closes the listener and all connections.
func (a *acted) kill() {
	_ = a.listener.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		_ = conn.Close()
	}
	a.conns = nil
}

func (a *acted) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		a.asked.Add(1)
		reply := cmp.Or(a.reply, "*2\r\n:1\r\n$1\r\n2\r\n")
		if command == "AUTH" || command == "SELECT" {
			reply = "+OK\r\n"
		}
		time.Sleep(a.latency)
		if a.hung.Load() {
			continue
		}
		for i := range len(reply) {
			time.Sleep(a.trickle)
			if _, err := io.WriteString(conn, reply[i:i+1]); err != nil {
				return
			}
		}
	}
}

// readCommand reads an array of strings in RESP, and returns the first.
func readCommand(r *bufio.Reader) (string, error) {
	number := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number()
	if err != nil {
		return "", err
	}
	words := make([]string, n)
	for i := range words {
		size, err := number()
		if err != nil {
			return "", err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return "", err
		}
		words[i] = string(word[:size])
	}
	return words[0], nil
}

func (a *acted) open(t *testing.T, url string) *Redis {
	t.Helper()
	start := time.Now()
	r, err := OpenRedis(RedisConfig{URL: url, Dial: a.network.DialContext, OnChange: func(degraded bool, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.changes = append(a.changes, fmt.Sprint(time.Since(start), " ", degraded, " ", err))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (a *acted) end(r *Redis) {
	_ = r.Close()
	a.kill()
	time.Sleep(s) // what it was about to reply
}

func (a *acted) wantChanges(t *testing.T, want ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if got := strings.Join(a.changes, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

const actedURL = "redis://127.0.0.1:6379"

// allow wants a decision after exactly so long, and returns it.
func allow(t *testing.T, l *Shared, after time.Duration) Decision {
	t.Helper()
	start := time.Now()
	d := l.Allow(context.Background(), "k")
	if took := time.Since(start); took != after {
		t.Errorf("a decision took %v, want %v", took, after)
	}
	return d
}

func TestAHungRedisIsGivenUpAndComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		r := a.open(t, actedURL)
		defer a.end(r)
		l := shared(t, r, Config{})
		if d := allow(t, l, 0); d.Fallback || d.Left != 2 {
			t.Errorf("well: %+v", d)
		}
		a.hung.Store(true)
		asked := a.asked.Load()
		for i, want := range []Decision{
			{Allowed: true, Left: 1, Next: time.Second, Fallback: true}, // 1 of the 3 was taken before
			{Allowed: true, Left: 0, Next: time.Second, Fallback: true},
			{Allowed: false, Left: 0, Next: time.Second, Fallback: true},
		} {
			if r.Degraded() {
				t.Errorf("degraded after %d failures", i)
			}
			if d := allow(t, l, 20*ms); d != want {
				t.Errorf("failure %d: %+v, want %+v", i+1, d, want)
			}
		}
		if !r.Degraded() {
			t.Error("not degraded after 3 failures")
		}
		for range 100 {
			if d := allow(t, l, 0); !d.Fallback {
				t.Errorf("not the local limiter: %+v", d)
			}
		}
		if n := a.asked.Load() - asked; n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		// Nobody comes any more. It is asked once a second, and found well.
		time.Sleep(3 * s)
		if n := a.asked.Load() - asked; n != 5 {
			t.Errorf("asked %d times after 3 s more, want 5", n)
		}
		a.hung.Store(false)
		time.Sleep(s)
		if r.Degraded() {
			t.Error("degraded, though it is well")
		}
		if d := allow(t, l, 0); d.Fallback {
			t.Errorf("well again: %+v", d)
		}
		a.wantChanges(t,
			"60ms true no answer within 20ms",
			"3.103s false <nil>", // asked in vain from 1.061 to 1.081, and from 2.082 to 2.102
		)
	})
}

// The client takes the place of the probe that comes by itself, and tells nothing.
func TestAClientThatLeavesAHalfOpenRedisDoesNotKeepItSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		r := a.open(t, actedURL)
		defer a.end(r)
		l := shared(t, r, Config{})
		a.hung.Store(true)
		for range failures {
			allow(t, l, 20*ms)
		}
		time.Sleep(s + ms/2)
		ctx, cancel := context.WithTimeout(context.Background(), 5*ms)
		defer cancel()
		l.Allow(ctx, "k")
		a.hung.Store(false)
		time.Sleep(s)
		if r.Degraded() {
			t.Error("degraded, though it is well")
		}
		a.wantChanges(t, "60ms true no answer within 20ms", "2.062s false <nil>")
	})
}

func TestATLSHandshakeThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t) // and does not know what it is told
		r := a.open(t, "rediss://127.0.0.1:6379")
		defer a.end(r)
		a.wantChanges(t, "60ms true no answer within 20ms")
	})
}

func TestARedisThatAnswersRubbishIsGivenUp(t *testing.T) {
	for _, tt := range []struct {
		reply string
		ok    bool
	}{
		{"*2\r\n:1\r\n$1\r\n0\r\n", true},
		{"*2\r\n:0\r\n$1\r\n3\r\n", true},
		{"*2\r\n:0\r\n$6\r\n-0.001\r\n", true},
		{"*2\r\n:2\r\n$1\r\n2\r\n", false},
		{"*2\r\n:-1\r\n$1\r\n2\r\n", false},
		{"*2\r\n:99999999999999999999\r\n$1\r\n2\r\n", false},
		{"*2\r\n:1\r\n$4\r\n1001\r\n", false},
		{"*2\r\n:1\r\n$2\r\n-1\r\n", false},
		{"*2\r\n:1\r\n$3\r\nNaN\r\n", false},
		{"*2\r\n:1\r\n$3\r\nInf\r\n", false},
		{"*2\r\n:1\r\n$1\r\nx\r\n", false},
		{"*2\r\n:1\r\n$-1\r\n", false},
		{"*2\r\n$-1\r\n$1\r\n2\r\n", false},
		{"*1\r\n:1\r\n", false},
		{"*3\r\n:1\r\n$1\r\n2\r\n:1\r\n", false},
		{"*-1\r\n", false},
		{"+OK\r\n", false},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", false},
	} {
		t.Run(tt.reply, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := acted{reply: tt.reply}
				a.listen(t)
				r := a.open(t, actedURL)
				defer a.end(r)
				if r.Degraded() == tt.ok {
					t.Errorf("degraded %t", r.Degraded())
				}
			})
		})
	}
}

func TestADecisionTakesNoLongerWhateverIsSlow(t *testing.T) {
	for _, tt := range []struct {
		name, url        string
		latency, trickle time.Duration
		after            time.Duration
		fallback         bool
	}{
		{"a reply just in time", actedURL, 20*ms - 1, 0, 20*ms - 1, false},
		{"a reply too late", actedURL, 20*ms + 1, 0, 20 * ms, true},
		{"byte by byte", actedURL, 0, 5 * ms, 20 * ms, true},
		{"a password, a database and a reply just in time", "redis://:secret@127.0.0.1:6379/1", 6 * ms, 0, 18 * ms, false},
		{"a password, a database and a reply too late", "redis://:secret@127.0.0.1:6379/1", 7 * ms, 0, 20 * ms, true},
		{"a password", "redis://:secret@127.0.0.1:6379/1", 21 * ms, 0, 20 * ms, true},
		{"a database", "redis://:secret@127.0.0.1:6379/1", 19 * ms, 0, 20 * ms, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a acted
				a.listen(t)
				r := a.open(t, tt.url)
				defer a.end(r)
				a.kill() // and with it the connection over which it was found well
				a.listen(t)
				l := shared(t, r, Config{})
				if d := allow(t, l, 0); !d.Fallback {
					t.Errorf("over a dead connection: %+v", d)
				}
				a.latency, a.trickle = tt.latency, tt.trickle
				if d := allow(t, l, tt.after); d.Fallback != tt.fallback {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

func TestAConnectionThatIsNotMadeIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := acted{}
		// It listens and accepts nobody, as when the queue of connections is full.
		ln, err := a.network.Listen("tcp", "127.0.0.1:6379")
		if err != nil {
			t.Fatal(err)
		}
		a.listener = ln
		start := time.Now()
		r := a.open(t, actedURL)
		defer a.end(r)
		if took := time.Since(start); took != 60*ms || !r.Degraded() {
			t.Errorf("opened after %v, degraded %t, want 60ms, true", took, r.Degraded())
		}
		allow(t, shared(t, r, Config{}), 0)
	})
}

func TestOneThatIsNotThereAtTheStartIsUsedWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		r := a.open(t, actedURL)
		l := shared(t, r, Config{})
		if d := allow(t, l, 0); !d.Fallback || !r.Degraded() {
			t.Errorf("%+v, degraded %t", d, r.Degraded())
		}
		time.Sleep(10 * s)
		a.listen(t)
		defer a.end(r)
		time.Sleep(s)
		if d := allow(t, l, 0); d.Fallback {
			t.Errorf("%+v", d)
		}
		a.wantChanges(t,
			"0s true dial tcp 127.0.0.1:6379: connect: connection refused",
			"10.01s false <nil>", // the tenth at 1.001 s each
		)
	})
}

func TestDeadConnectionsFailOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := acted{latency: ms}
		a.listen(t)
		r := a.open(t, actedURL)
		defer func() { a.end(r) }()
		l := shared(t, r, Config{})
		atOnce := func(n int) (fallbacks int) {
			var wg sync.WaitGroup
			var fell atomic.Int64
			for range n {
				wg.Go(func() {
					if l.Allow(context.Background(), "k").Fallback {
						fell.Add(1)
					}
				})
			}
			wg.Wait()
			return int(fell.Load())
		}
		if n := atOnce(50); n != 0 || a.dialed.Load() != 50 {
			t.Errorf("%d fell back, %d connections; want 0, 50", n, a.dialed.Load())
		}
		ctx, cancel := context.WithTimeout(context.Background(), ms/2)
		defer cancel()
		l.Allow(ctx, "k") // leaves, and takes but its own connection along
		if n := atOnce(49); n != 0 || a.dialed.Load() != 50 {
			t.Errorf("%d fell back, %d connections; want 0, 50", n, a.dialed.Load())
		}
		a.kill()
		a.listen(t)
		if n := atOnce(1); n != 1 {
			t.Errorf("%d fell back over a dead connection, want 1", n)
		}
		if n := atOnce(50); n != 0 || r.Degraded() {
			t.Errorf("%d fell back over new connections, degraded %t", n, r.Degraded())
		}
	})
}

// Neither tells anything about Redis.
func TestClientsThatGoAndCrowdsDoNotDegrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := acted{latency: 15 * ms}
		a.listen(t)
		r := a.open(t, actedURL)
		defer a.end(r)
		l := shared(t, r, Config{})
		for range 10 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*ms)
			start := time.Now()
			l.Allow(ctx, "k")
			if took := time.Since(start); took != 10*ms {
				t.Errorf("a decision for a client that left took %v", took)
			}
			cancel()
		}
		var asked, local atomic.Int64
		var wg sync.WaitGroup
		for range 150 {
			wg.Go(func() {
				start := time.Now()
				d := l.Allow(context.Background(), "k")
				switch took := time.Since(start); {
				case !d.Fallback && took == 15*ms:
					asked.Add(1)
				case d.Fallback && took == 0:
					local.Add(1)
				default:
					t.Errorf("%+v after %v", d, took)
				}
			})
		}
		wg.Wait()
		if asked.Load() != maxConns || local.Load() != 150-maxConns {
			t.Errorf("%d asked, %d did not; want %d and %d", asked.Load(), local.Load(), maxConns, 150-maxConns)
		}
		if r.Degraded() {
			t.Error("degraded")
		}
		a.wantChanges(t)
	})
}

func TestAClosedOneIsNotDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		r := a.open(t, actedURL)
		defer a.end(r)
		_ = r.Close()
		l := shared(t, r, Config{})
		for range 2 * failures {
			if d := allow(t, l, 0); !d.Fallback {
				t.Errorf("%+v", d)
			}
		}
		a.wantChanges(t)
	})
}

// And so leaves no goroutine in the bubble, and nobody to ask.
func TestClosedIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		r := a.open(t, actedURL)
		_ = r.Close()
		a.listen(t)
		time.Sleep(time.Minute)
		if d := allow(t, shared(t, r, Config{}), 0); !d.Fallback {
			t.Errorf("%+v", d)
		}
		if n := a.dialed.Load(); n != 0 {
			t.Errorf("dialed %d times", n)
		}
		a.end(r)
	})
}

func TestBadURLs(t *testing.T) {
	for _, tt := range []struct {
		url string
		ok  bool
	}{
		{"redis://127.0.0.1:6379/0", true},
		{"redis://127.0.0.1", true},
		{"redis://localhost:6379/", true},
		{"redis://[::1]:6379/15", true},
		{"rediss://user:pass@redis.example:6380/1", true},
		{"redis://:pass@redis.example", true},
		{"", false},
		{"127.0.0.1:6379", false},
		{"localhost:6379", false},
		{"redis:127.0.0.1", false},
		{"redis://", false},
		{"redis://:6379", false},
		{"redis:///0", false},
		{"http://127.0.0.1:6379", false},
		{"redis://[::1]", true},
		{"redis://127.0.0.1:", true},
		{"redis://127.0.0.1:0", false},
		{"redis://127.0.0.1:65536", false},
		{"redis://127.0.0.1:x", false},
		{"redis://127.0.0.1:6379/x", false},
		{"redis://127.0.0.1:6379/-1", false},
		{"redis://127.0.0.1:6379/0/1", false},
		{"redis://127.0.0.1:6379/0?db=1", false},
		{"redis://127.0.0.1:6379/0#1", false},
		{"redis://127.0.0.1 :6379", false},
		{"redis://%zz@127.0.0.1", false},
	} {
		if err := CheckURL(tt.url); (err == nil) != tt.ok {
			t.Errorf("%q: %v", tt.url, err)
		}
	}
	for _, url := range []string{"redis://user:sec@ret@127.0.0.1:x", "redis://127.0.0.1?password=secret", "redis://:secret"} {
		_, err := OpenRedis(RedisConfig{URL: url})
		if want := `ratelimit: URL: must be like redis://127.0.0.1:6379/0`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := OpenRedis(RedisConfig{URL: actedURL, Timeout: -1})
	if want := `ratelimit: Timeout is -1ns, must not be negative`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWithoutAPort(t *testing.T) {
	for url, want := range map[string]string{
		"redis://127.0.0.1": "127.0.0.1:6379", "redis://127.0.0.1:/1": "127.0.0.1:6379",
		"redis://[::1]": "[::1]:6379", "redis://me:secret@[::1]:1/0": "[::1]:1",
	} {
		var dialed string
		r, err := OpenRedis(RedisConfig{URL: url, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = address
			return nil, io.EOF
		}})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		if dialed != want {
			t.Errorf("%s: dialed %s, want %s", url, dialed, want)
		}
	}
}

// What goes wrong with a real Redis, and how long it takes.
func TestARealRedisFails(t *testing.T) {
	for _, tt := range []struct {
		name         string
		breaks, heal func(*redistest.Server)
		err          string
	}{
		{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart, "connection refused"},
		{"stopped", (*redistest.Server).Stop, (*redistest.Server).Continue, "no answer within 20ms"},
		{"paused", func(s *redistest.Server) { s.Do("CLIENT", "PAUSE", 1500) }, func(*redistest.Server) {}, "no answer within 20ms"},
		{"a replica, which is read-only",
			func(s *redistest.Server) { s.Do("REPLICAOF", "127.0.0.1", "1") },
			func(s *redistest.Server) { s.Do("REPLICAOF", "NO", "ONE") }, "READONLY"},
		{"full",
			func(s *redistest.Server) { s.Do("CONFIG", "SET", "maxmemory", 1) },
			func(s *redistest.Server) { s.Do("CONFIG", "SET", "maxmemory", 0) }, "OOM"},
		{"not to be written to",
			func(s *redistest.Server) { s.Do("CONFIG", "SET", "min-replicas-to-write", 1) },
			func(s *redistest.Server) { s.Do("CONFIG", "SET", "min-replicas-to-write", 0) }, "NOREPLICAS"},
		{"keys of another type",
			func(s *redistest.Server) {
				for _, key := range []string{"test:k", "probe"} {
					s.Do("SET", "storefront:"+key, "mine")
				}
			},
			func(s *redistest.Server) { s.Do("FLUSHALL") }, "WRONGTYPE"},
		{"scripts not allowed",
			func(s *redistest.Server) { s.Do("ACL", "SETUSER", "default", "-@scripting") },
			func(s *redistest.Server) { s.Do("ACL", "SETUSER", "default", "+@scripting") }, "NOPERM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			changes := make(chan error, 10)
			r, err := OpenRedis(RedisConfig{URL: server.URL(), OnChange: func(degraded bool, err error) {
				if degraded != (err != nil) {
					t.Errorf("degraded %t: %v", degraded, err)
				}
				changes <- err
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			until := func(degraded bool) {
				t.Helper()
				for deadline := time.Now().Add(10 * time.Second); r.Degraded() != degraded; time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("degraded is not %t", degraded)
					}
				}
			}
			until(false)
			for len(changes) > 0 {
				<-changes // a machine that stalls
			}
			l := shared(t, r, Config{Burst: 1000, Rate: 0.001})
			stalls := redistest.Stalls(t)

			tt.breaks(server)
			var slowest time.Duration
			for i := range 100 {
				start := time.Now()
				d := l.Allow(context.Background(), "k")
				slowest = max(slowest, time.Since(start))
				if i >= failures && (!d.Fallback || !d.Allowed) {
					t.Errorf("decision %d: %+v", i, d)
				}
			}
			t.Logf("the slowest of 100 decisions took %v; the machine stalls for %v", slowest, stalls())
			if slowest > 50*time.Millisecond+stalls() {
				t.Errorf("a decision took %v", slowest)
			}
			until(true)
			if err := <-changes; err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("degraded as %v, want %s", err, tt.err)
			}

			tt.heal(server)
			until(false)
			if err := <-changes; err != nil {
				t.Errorf("told %v when it was back", err)
			}
			if d := l.Allow(context.Background(), "k"); d.Fallback {
				t.Errorf("back: %+v", d)
			}
			if len(changes) > 0 {
				t.Errorf("told of %d changes more", len(changes))
			}
		})
	}
}

func TestAWrongPasswordDegrades(t *testing.T) {
	server := redistest.Start(t)
	server.Do("CONFIG", "SET", "requirepass", "secret")
	var told error
	r, err := OpenRedis(RedisConfig{URL: "redis://:wrong@" + server.Addr, Timeout: 10 * time.Second, OnChange: func(_ bool, err error) { told = err }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Degraded() || told == nil || !strings.Contains(told.Error(), "WRONGPASS") || strings.Contains(told.Error(), "wrong@") {
		t.Errorf("degraded %t as %v", r.Degraded(), told)
	}
	if r := openRedis(t, "redis://:secret@"+server.Addr+"/3"); r.Degraded() {
		t.Error("degraded with the right password")
	}
}
