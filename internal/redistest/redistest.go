// Package redistest runs a real Redis for tests.
package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Server is a redis-server of a test's own, which ends with the test. It keeps nothing
// when it is killed.
type Server struct {
	Addr string // host:port

	t   testing.TB
	cmd *exec.Cmd
	out bytes.Buffer
}

// Start starts redis-server on a free port. Where that is not installed the test is
// skipped or, with STOREFRONT_REDIS_SERVER=required in the environment, fails.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("STOREFRONT_REDIS_SERVER") == "required" {
			t.Fatal(err)
		}
		t.Skipf("needs a Redis: %v", err)
	}
	s := &Server{t: t, Addr: FreeAddr(t)}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// FreeAddr is an address at which nobody listens.
func FreeAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// URL is what the flag -redis takes.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// Restart starts the server again at its address, empty, and waits until it answers.
func (s *Server) Restart() {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.out.Reset()
	s.cmd = exec.Command("redis-server", "--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--dir", s.t.TempDir())
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := s.ask("PING")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Kill()
			s.t.Fatalf("redis-server does not answer: %v\n%s", err, s.out.String())
		}
	}
}

// Kill ends the server at once, if it runs.
func (s *Server) Kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill() // or it has ended by itself
		_ = s.cmd.Wait()         // which says that it was killed
	}
}

// Stop halts the server, which then answers nobody and closes nothing, until Continue.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Continue ends a Stop.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Do has the server execute a command.
func (s *Server) Do(command string, args ...any) any {
	s.t.Helper()
	reply, err := s.ask(command, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", fmt.Sprint(append([]any{command}, args...)...), err)
	}
	return reply
}

func (s *Server) ask(command string, args ...any) (any, error) {
	conn, err := redis.Dial("tcp", s.Addr, redis.DialConnectTimeout(10*time.Second), redis.DialReadTimeout(10*time.Second))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(command, args...)
}

// Stalls returns a function that says how long this machine, since the test began, has at
// most kept a goroutine that only slept from going on: what a bound in real time must allow.
func Stalls(t testing.TB) func() time.Duration {
	var worst atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			start := time.Now()
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				worst.Store(max(worst.Load(), int64(time.Since(start))))
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
	return func() time.Duration { return time.Duration(worst.Load()) }
}
