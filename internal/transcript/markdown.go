// Package transcript runs the shell sessions of Markdown files as tests: what a
// page shows as output is what its commands print.
//
// A block fenced as console holds commands, each on a line after "$ ", and what
// they print. A block fenced as sh is for the reader alone.
package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Pages are the files with sessions: the README below root, then the lessons in
// their order.
func Pages(root string) ([]string, error) {
	lessons, err := filepath.Glob(filepath.Join(root, "scripts", "lessons", "*.md"))
	return append([]string{filepath.Join(root, "README.md")}, lessons...), err
}

// Block is a fenced block of a file.
type Block struct {
	File  string
	Line  int    // of the opening fence, from 1
	Lang  string // what the fence says: console, sh, …
	Lines []string
}

// fence is the line that opens or closes a block. One that only looks like it would
// let a block go untested.
var fence = regexp.MustCompile("^[ \t>]*(```|~~~)")

// Blocks returns the fenced blocks of a Markdown file, in order. It is strict: their
// languages are console, sh and text, fences stand at the beginning of the line, and
// commands only in console blocks.
func Blocks(file string) ([]Block, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open == nil && slices.Contains([]string{"```console", "```sh", "```text"}, line):
			open = &Block{File: file, Line: i + 1, Lang: line[3:]}
		case fence.MatchString(line):
			return nil, fmt.Errorf("%s:%d: %q is no fence of console, sh or text", file, i+1, line)
		case strings.HasPrefix(strings.TrimLeft(line, " \t>"), "$ ") && (open == nil || open.Lang != "console" || line[0] != '$'):
			return nil, fmt.Errorf("%s:%d: a command outside of a console block", file, i+1)
		case strings.TrimSpace(line) == "…":
			return nil, fmt.Errorf("%s:%d: … alone on a line says nothing", file, i+1)
		case open != nil:
			open.Lines = append(open.Lines, line)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: the block is not closed", file, open.Line)
	}
	return blocks, nil
}

// Step is one command of a block and what it prints.
type Step struct {
	File    string
	Line    int // of the command, from 1
	Command string
	Want    string // every line of it ends in a newline
}

// Steps splits a console block.
func (b Block) Steps() ([]Step, error) {
	var steps []Step
	for i, line := range b.Lines {
		at := b.Line + 1 + i
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, Step{File: b.File, Line: at, Command: command})
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%s:%d: output before the first command", b.File, at)
		}
		steps[len(steps)-1].Want += line + "\n"
	}
	return steps, nil
}

// Commands are those of all pages below root that begin with prefix, in order.
func Commands(root, prefix string) ([]Step, error) {
	files, err := Pages(root)
	if err != nil {
		return nil, err
	}
	var commands []Step
	for _, file := range files {
		blocks, err := Blocks(file)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			if b.Lang != "console" {
				continue
			}
			steps, err := b.Steps()
			if err != nil {
				return nil, err
			}
			for _, step := range steps {
				if strings.HasPrefix(step.Command, prefix) {
					commands = append(commands, step)
				}
			}
		}
	}
	return commands, nil
}

// Differs says where a step stands, what it is, and what it printed in place of
// what; "" if got matches.
func (s Step) Differs(got string) string {
	if Matches(s.Want, got) {
		return ""
	}
	message := fmt.Sprintf("%s:%d: $ %s\ngot:\n%s\nwant:\n%s", s.File, s.Line, s.Command, got, s.Want)
	if got != "" && !strings.HasSuffix(got, "\n") {
		message += "(what it printed does not end in a newline)\n"
	}
	return message
}

// Matches says whether got is what was to be printed: the same text, where … in
// want stands for any run of characters within a line.
func Matches(want, got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", "[^\n]*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

// Update replaces a step's output in its file by what it printed; lines with … that
// still match stay. Steps before it in the file must be updated after it, as lines
// move.
func (s Step) Update(got string) error {
	text, err := os.ReadFile(s.File)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if at := s.Line - 1; at >= len(lines) || lines[at] != "$ "+s.Command {
		return fmt.Errorf("%s:%d: the file has changed meanwhile, $ %s is not there", s.File, s.Line, s.Command)
	}
	rest := lines[s.Line+strings.Count(s.Want, "\n"):]
	if got != "" {
		printed := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		olds := strings.Split(s.Want, "\n")
		for i, line := range printed {
			if at := slices.IndexFunc(olds, func(old string) bool { return Matches(old, line) }); at >= 0 {
				printed[i] = olds[at]
				olds = olds[at+1:]
			}
		}
		rest = append(printed, rest...)
	}
	lines = append(lines[:s.Line:s.Line], rest...)
	return os.WriteFile(s.File, []byte(strings.Join(lines, "\n")), 0o644)
}
