package main

import (
	"fmt"
	"os"
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

const root = "../.."

// pages are the README and the lessons.
func pages(t *testing.T) []string {
	t.Helper()
	files, err := transcript.Pages(root)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d pages, %v: want the README, eight lessons and the note for the teacher", len(files), err)
	}
	return files
}

// pageBlocks are the fenced blocks of a page.
func pageBlocks(t *testing.T, file string) []transcript.Block {
	t.Helper()
	blocks, err := transcript.Blocks(file)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// A terminal is where a reader types: one under a fake clock, or the real one.
type terminal interface {
	// serve starts a server, in place of the one at its address.
	serve(t *testing.T, args []string)
	// plain starts one without flags, unless it is there already.
	plain(t *testing.T)
	// runs says whether it knows the program of this command.
	runs(command string) bool
	// run returns what a command prints.
	run(t *testing.T, command string) (string, error)
}

// A mismatch is a command that did not print what its page says.
type mismatch struct {
	transcript.Step
	got string
	err error
}

func (m mismatch) String() string {
	if m.err != nil {
		return fmt.Sprintf("%s:%d: $ %s\n%v", m.File, m.Line, m.Command, m.err)
	}
	return m.Differs(m.got)
}

// A line of a block fenced as sh that is this starts a server, with the flags that
// follow, for the console blocks after it.
const startLine = "go run ./cmd/storefront"

// startIn is the flags of the server that a line starts, if it does.
func startIn(t *testing.T, line string) (args []string, ok bool) {
	t.Helper()
	words := strings.Fields(line)
	if strings.Join(words[:min(3, len(words))], " ") == startLine {
		return words[3:], true
	}
	if strings.Contains(line, "cmd/storefront") && line != "go build ./cmd/storefront && ./storefront" {
		t.Errorf("%s: is that to start a server?", line)
	}
	return nil, false
}

// read types a page's commands into a terminal, pace apart. It returns how many
// there were, and those that printed something else.
func read(t *testing.T, term terminal, file string, pace time.Duration) (ran int, wrong []mismatch) {
	t.Helper()
	term.plain(t)
	for _, b := range pageBlocks(t, file) {
		switch b.Lang {
		case "sh":
			for _, line := range b.Lines {
				if args, ok := startIn(t, line); ok {
					term.serve(t, args)
				}
			}
		case "console":
			steps, err := b.Steps()
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				if !term.runs(step.Command) {
					continue
				}
				ran++
				time.Sleep(pace)
				got, err := term.run(t, step.Command)
				if err != nil || step.Differs(got) != "" {
					wrong = append(wrong, mismatch{step, got, err})
				}
			}
		}
	}
	return ran, wrong
}

// fake is a terminal under a fake clock.
type fake struct {
	network memnet.Network
	shell   *transcript.Shell
	servers map[string]*server // by address
	flags   []string           // of all servers, besides those of the page
	log     strings.Builder    // of the servers that have ended
}

type server struct {
	*program
	args []string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{servers: map[string]*server{}}
	var err error
	f.shell, err = transcript.NewShell(map[string]transcript.Command{"curl": transcript.Curl(f.network.DialContext)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const usualAddress = "127.0.0.1:3000"

// addressIn is the one at which a server with these flags listens.
func addressIn(args []string) string {
	if i := slices.Index(args, "-addr"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return usualAddress
}

func (f *fake) serve(t *testing.T, args []string) {
	address := addressIn(args)
	f.stop(t, address)
	f.servers[address] = &server{start(&f.network, nil, slices.Concat(args, f.flags)...), args}
}

func (f *fake) plain(t *testing.T) {
	if s := f.servers[usualAddress]; s == nil || len(s.args) > 0 {
		f.serve(t, nil)
	}
}

// stop is Ctrl-C, where there is a server.
func (f *fake) stop(t *testing.T, address string) {
	s := f.servers[address]
	if s == nil {
		return
	}
	delete(f.servers, address)
	s.signals <- syscall.SIGINT
	if code := <-s.code; code != 0 {
		t.Errorf("storefront %v: exit %d, stderr:\n%s", s.args, code, s.stderr.String())
	}
	f.log.WriteString(s.stderr.String())
}

func (f *fake) close(t *testing.T) {
	for address := range f.servers {
		f.stop(t, address)
	}
}

func (*fake) runs(command string) bool { return !elsewhere(command) }

// elsewhere says whether a command is another program, whose own tests run it.
func elsewhere(command string) bool {
	return strings.HasPrefix(command, "go run ./cmd/backpressure") || strings.HasPrefix(command, "go test ./scripts/exercises -exercise ")
}

func (f *fake) run(t *testing.T, command string) (string, error) {
	return f.shell.Run(t.Context(), command)
}

// paces are how long a reader takes from one command to the next. What a page
// prints must not depend on it.
var paces = []time.Duration{0, 2 * time.Second, time.Minute}

// Every console block runs against the whole program, and must print what stands
// there: each page alone, and all of them in order, as in a workshop.
func TestPagesPrintWhatTheySay(t *testing.T) {
	files := pages(t)
	sessions := map[string][]string{"all": files}
	for _, file := range files {
		sessions[filepath.Base(file)] = []string{file}
		if *update {
			synctest.Test(t, func(t *testing.T) { rewrite(t, file) })
		}
	}
	for name, files := range sessions {
		for _, pace := range paces {
			t.Run(fmt.Sprint(name, " at ", pace), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					term := newFake(t)
					defer term.close(t)
					for _, file := range files {
						ran, wrong := read(t, term, file, pace)
						if want := contents[filepath.Base(file)].commands; ran != want {
							t.Errorf("%s: %d commands ran, want %d", file, ran, want)
						}
						for _, m := range wrong {
							t.Error(m)
						}
					}
				})
			})
		}
	}
}

// rewrite has a page show what its commands print.
func rewrite(t *testing.T, file string) {
	term := newFake(t)
	defer term.close(t)
	_, wrong := read(t, term, file, 0)
	for _, m := range slices.Backward(wrong) { // as lines move
		if m.err != nil {
			continue // the reading that follows reports it
		}
		if err := m.Update(m.got); err != nil {
			t.Fatal(err)
		}
	}
}

// A changed word is found, and the message has all that it takes to correct it.
func TestAChangedWordIsFound(t *testing.T) {
	lesson, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "README.md")
	changed := strings.Replace(string(lesson), "\n{\"call\":6}\n", "\n{\"call\":7}\n", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		term := newFake(t)
		defer term.close(t)
		_, wrong := read(t, term, file, 0)
		if len(wrong) != 1 {
			t.Fatalf("%d mismatches, want 1: %v", len(wrong), wrong)
		}
		line := strings.Count(changed[:strings.Index(changed, "{\"call\":7}")], "\n")
		want := fmt.Sprintf("%s:%d: $ curl -s -w '\\n' localhost:3000/checkout\ngot:\n{\"call\":6}\n\nwant:\n{\"call\":7}\n", file, line)
		if got := wrong[0].String(); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		rewrite(t, file) // as -update does
		if got, _ := os.ReadFile(file); string(got) != string(lesson) {
			t.Error("the update did not bring the page back")
		}
	})
}

// scripts/walkthrough.sh runs this file for real; it is the README's walkthrough.
func TestWalkthroughStandsInTheReadme(t *testing.T) {
	golden, err := os.ReadFile(root + "/testdata/walkthrough.golden")
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, b := range pageBlocks(t, root+"/README.md") {
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
