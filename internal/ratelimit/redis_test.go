package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAHungRedisIsGivenUpAndComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		r := a.open(t, actedURL)
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
		a.open(t, "rediss://127.0.0.1:6379")
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

func TestAConnectionIsKeptFor30s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a acted
		a.listen(t)
		l := shared(t, a.open(t, actedURL), Config{})
		for i, row := range []struct {
			after  time.Duration
			dialed int64
		}{{0, 1}, {30 * s, 1}, {30*s + 1, 2}} {
			time.Sleep(row.after)
			if d := allow(t, l, 0); d.Fallback || a.dialed.Load() != row.dialed {
				t.Errorf("row %d: %+v, %d connections, want %d", i, d, a.dialed.Load(), row.dialed)
			}
		}
	})
}

// Neither tells anything about Redis.
func TestClientsThatGoAndCrowdsDoNotDegrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := acted{latency: 15 * ms}
		a.listen(t)
		r := a.open(t, actedURL)
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
		if r.wake.Stop() {
			t.Error("a timer goes on")
		}
	})
}
