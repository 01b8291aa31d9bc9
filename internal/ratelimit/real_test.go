package ratelimit

import (
	"context"
	"strings"
	"testing"
	"time"

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
