package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/transcript"
)

const readme = "../../README.md"

// startLine in a block fenced as sh starts a fresh server, with the flags that
// follow, for the console blocks after it.
const startLine = "go run ./cmd/storefront"

// session is a server and the blocks that talk to it.
type session struct {
	args   []string
	blocks []transcript.Block
}

// sessions returns those of a page.
func sessions(t *testing.T, file string) []session {
	t.Helper()
	blocks, err := transcript.Blocks(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []session
	for _, b := range blocks {
		switch {
		case b.Lang == "sh":
			for _, line := range b.Lines {
				if args, ok := strings.CutPrefix(line, startLine); ok {
					all = append(all, session{args: strings.Fields(args)})
				}
			}
		case b.Lang == "console":
			if len(all) == 0 {
				t.Fatalf("%s:%d: no server was started", file, b.Line)
			}
			last := &all[len(all)-1]
			last.blocks = append(last.blocks, b)
		}
	}
	return all
}

// pace is how long a reader takes from one command to the next. What a page
// prints must not depend on typing faster.
const pace = 2 * time.Second

// Every console block of the README runs against the whole program, under a fake
// clock, and must print what stands there.
func TestReadmePrintsWhatItSays(t *testing.T) {
	ran := 0
	var updates []func() error
	for _, s := range sessions(t, readme) {
		synctest.Test(t, func(t *testing.T) {
			p := start(new(memnet.Network), nil, s.args...)
			shell, err := transcript.NewShell(map[string]transcript.Command{"curl": transcript.Curl(p.DialContext)})
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range s.blocks {
				if strings.HasPrefix(b.Lines[0], "$ go run ./cmd/backpressure") {
					continue // that program's own test runs it
				}
				for _, step := range steps(t, b) {
					ran++
					time.Sleep(pace)
					got, err := shell.Run(t.Context(), step.Command)
					if err != nil {
						t.Errorf("%s:%d: %s\n%v", b.File, step.Line, step.Command, err)
					}
					if transcript.Matches(step.Want, got) {
						continue
					}
					if *update {
						updates = append(updates, func() error { return transcript.Update(b.File, step, got) })
						continue
					}
					t.Errorf("%s:%d: $ %s\ngot:\n%s\nwant:\n%s", b.File, step.Line, step.Command, got, step.Want)
				}
			}
			p.signals <- syscall.SIGTERM
			if code := <-p.code; code != 0 {
				t.Errorf("%v: exit %d, stderr:\n%s", s.args, code, p.stderr.String())
			}
		})
	}
	if ran < 5 {
		t.Errorf("%d commands ran: are the blocks still found?", ran)
	}
	// From the end, as lines move.
	for _, u := range slices.Backward(updates) {
		if err := u(); err != nil {
			t.Fatal(err)
		}
	}
}

func steps(t *testing.T, b transcript.Block) []transcript.Step {
	t.Helper()
	steps, err := b.Steps()
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// functions are what bash has in place of two commands: the built binary for "go
// run ./cmd/NAME", and real curl with its output in one piece. It writes the body
// and the text of -w apart, so those of two that end in the same moment could mix.
const functions = `
go() { "$BIN/$(basename "$2")" "${@:3}"; }
curl() { local out; out=$(command curl "$@"; printf .); printf '%s' "${out%.}"; }
`

// The same blocks with built binaries, bash, curl and real time, as fast as the
// commands come.
func TestReadmePrintsWhatItSaysForReal(t *testing.T) {
	if os.Getenv("STOREFRONT_FOR_REAL") == "" {
		t.Skip("takes real time: make walkthrough runs it")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../storefront", "../backpressure").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range sessions(t, readme) {
		server := exec.Command(filepath.Join(bin, "storefront"), append(s.args, "-addr", "127.0.0.1:0")...)
		stdout, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		server.Stderr = &stderr
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Process.Kill() }) // it has ended already if all is well
		line, err := bufio.NewReader(stdout).ReadString('\n')
		address, ok := strings.CutPrefix(strings.TrimSpace(line), "storefront listens on http://")
		if !ok {
			t.Fatalf("%v: printed %q, %v; stderr:\n%s", s.args, line, err, &stderr)
		}
		for _, b := range s.blocks {
			for _, step := range steps(t, b) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				shell := exec.CommandContext(ctx, "bash", "-c", functions+strings.ReplaceAll(step.Command, "localhost:3000", address))
				shell.Env = append(os.Environ(), "BIN="+bin)
				out, err := shell.CombinedOutput()
				got := strings.ReplaceAll(string(out), "\r\n", "\n") // curl -i prints header lines as they came
				if err != nil || !transcript.Matches(step.Want, got) {
					t.Errorf("%s:%d: $ %s\n%v, got:\n%s\nwant:\n%s", b.File, step.Line, step.Command, err, got, step.Want)
				}
			}
		}
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("%v: %v, stderr:\n%s", s.args, err, &stderr)
		}
	}
}

// scripts/walkthrough.sh runs this file for real; it is the README's walkthrough.
func TestWalkthroughStandsInTheReadme(t *testing.T) {
	golden, err := os.ReadFile("../../testdata/walkthrough.golden")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := transcript.Blocks(readme)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, b := range blocks {
		if b.Lang == "console" {
			parts = append(parts, strings.Join(b.Lines, "\n")+"\n")
		}
	}
	for part := range strings.SplitSeq(string(golden), "\n\n") {
		part = strings.TrimSuffix(part, "\n") + "\n"
		if !slices.Contains(parts, part) {
			t.Errorf("no block of the README is:\n%s", part)
		}
	}
}
