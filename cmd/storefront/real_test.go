package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// live is a terminal with built binaries, bash, curl and real time.
type live struct {
	bin     string
	servers map[string]*liveServer // by the address that the page says
}

type liveServer struct {
	*exec.Cmd
	args   []string
	url    string // host and port, of a free one
	stderr bytes.Buffer
}

// localhost replaces the addresses of the page by those that are.
func (r *live) localhost(s string) string {
	for address, server := range r.servers {
		s = strings.ReplaceAll(s, strings.Replace(address, "127.0.0.1", "localhost", 1), server.url)
	}
	return s
}

func (r *live) serve(t *testing.T, args []string) {
	t.Helper()
	address, listen := addressIn(args), "127.0.0.1:0"
	if s := r.servers[address]; s != nil {
		listen = s.url // others may call it there
	}
	flags := append(strings.Fields(r.localhost(strings.Join(args, " "))), "-addr", listen)
	r.stop(t, address)
	s := &liveServer{args: args}
	s.Cmd = exec.Command(filepath.Join(r.bin, "storefront"), flags...)
	s.Env = environ()
	s.Stderr = &s.stderr
	stdout, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Process.Kill() }) // it has ended already if all is well
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "storefront listens on http://")
	if !ok {
		t.Fatalf("%v: printed %q, %v; stderr:\n%s", args, line, err, &s.stderr)
	}
	s.url = url
	r.servers[address] = s
}

// environ is that of a reader who has set nothing.
func environ() []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "STOREFRONT_") }), "no_proxy=*")
}

func (r *live) plain(t *testing.T) {
	t.Helper()
	if s := r.servers[usualAddress]; s == nil || len(s.args) > 0 {
		r.serve(t, nil)
	}
}

func (r *live) stop(t *testing.T, address string) {
	t.Helper()
	s := r.servers[address]
	if s == nil {
		return
	}
	delete(r.servers, address)
	if err := s.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("storefront %v: %v, stderr:\n%s", s.args, err, &s.stderr)
	}
}

func (r *live) close(t *testing.T) {
	t.Helper()
	for address := range r.servers {
		r.stop(t, address)
	}
}

func (*live) runs(string) bool { return true }

// functions are what bash has in place of two commands: the built binary for "go
// run ./cmd/NAME", and real curl with its output in one piece. It writes the body
// and the text of -w apart, so those of two that end in the same moment could mix.
const functions = `
go() { if [ "$1" = run ]; then "$BIN/$(basename "$2")" "${@:3}"; else command go "$@"; fi; }
curl() { local out; out=$(command curl -q "$@"; printf .); printf '%s' "${out%.}"; }
`

// run lets a command exit with any code: what it prints is what counts.
func (r *live) run(t *testing.T, command string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", functions+r.localhost(command))
	shell.Dir = root
	shell.Env = append(environ(), "BIN="+r.bin)
	out, err := shell.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n"), err // curl -i prints header lines as they came
}

// newLive returns a way to open terminals. It skips the test unless it is to take
// real time.
func newLive(t *testing.T) func() *live {
	t.Helper()
	if os.Getenv("STOREFRONT_FOR_REAL") == "" {
		t.Skip("takes real time: scripts/lessons.sh runs it")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../storefront", "../backpressure").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func() *live { return &live{bin: bin, servers: map[string]*liveServer{}} }
}

// The same blocks once for real, as fast as the commands come.
func TestPagesPrintWhatTheySayForReal(t *testing.T) {
	open := newLive(t)
	for _, file := range pages(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel() // they mostly wait
			term := open()
			ran, wrong := read(t, term, file, 0)
			term.close(t)
			if len(wrong) > 0 {
				// A machine that is busy with something else for half a second
				// is no fault of the page's. One that is wrong stays so.
				t.Logf("once more, as it differs: %v", wrong)
				term = open()
				ran, wrong = read(t, term, file, 0)
				term.close(t)
			}
			for _, m := range wrong {
				t.Error(m)
			}
			if want := contents[filepath.Base(file)]; ran != want.commands+want.elsewhere {
				t.Errorf("%d commands ran, want %+v", ran, want)
			}
		})
	}
}
