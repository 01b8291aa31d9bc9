package main

import (
	"os"
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

// sessions leaves out the blocks of cmd/backpressure, which its own test runs.
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
		case b.Lang == "console" && !strings.HasPrefix(b.Lines[0], "$ go run ./cmd/backpressure"):
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
				steps, err := b.Steps()
				if err != nil {
					t.Fatal(err)
				}
				for _, step := range steps {
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
