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
	"time"

	"example.com/storefront/internal/memnet"
)

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

// open opens it until the test ends.
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
	t.Cleanup(func() {
		_ = r.Close() // of connections, whose ends nobody minds
		a.kill()
		time.Sleep(s) // what it was about to reply
	})
	return r
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
