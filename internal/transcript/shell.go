package transcript

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Command is a program of a Shell's. It returns the exit code.
type Command func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Shell runs commands as bash does, with loops, jobs and subshells, but the only
// programs it knows are its own. It works under testing/synctest.
type Shell struct {
	runner *interp.Runner
	in     string // of the command that runs: what the one before the pipe printed
	out    Buffer
	errs   Buffer
}

// NewShell returns a shell that knows these commands, sleep and the filters.
func NewShell(commands map[string]Command) (*Shell, error) {
	s := &Shell{}
	known := map[string]Command{"sleep": sleep}
	for name, program := range filters {
		known[name] = filter(program)
	}
	maps.Copy(known, commands)
	exec := func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			command := known[args[0]]
			if command == nil {
				return fmt.Errorf("%s is not a command of this shell", args[0])
			}
			hc := interp.HandlerCtx(ctx)
			if code := command(ctx, args, strings.NewReader(s.in), hc.Stdout, hc.Stderr); code != 0 {
				return interp.ExitStatus(code)
			}
			return nil
		}
	}
	// Redirections go to /dev/null or nowhere: a transcript leaves no files.
	open := func(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
		if filepath.Clean(path) != os.DevNull {
			return nil, fmt.Errorf("%s: only %s can be opened", path, os.DevNull)
		}
		return interp.DefaultOpenHandler()(ctx, path, flag, perm)
	}
	var err error
	s.runner, err = interp.New(
		interp.StdIO(nil, &s.out, &s.errs),
		interp.Env(expand.ListEnviron()),
		interp.ExecHandlers(exec),
		interp.OpenHandler(open),
	)
	return s, err
}

// Run runs one command line and returns what it printed. The error is for what
// the shell cannot do, or what a program complained of; an exit code is none.
func (s *Shell) Run(ctx context.Context, line string) (string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewBufferString(line), "")
	if err != nil {
		return "", err
	}
	stages := []syntax.Node{file}
	if len(file.Stmts) == 1 {
		stages = pipeline(file.Stmts[0])
	}
	for _, stage := range stages {
		if at := pipeIn(stage); at != nil {
			return "", fmt.Errorf("%v: a pipe is only known between the commands of a line", at.Pos())
		}
	}
	s.errs.Reset()
	var out string
	for _, stage := range stages {
		s.in = out
		s.out.Reset()
		err = s.runner.Run(ctx, stage)
		if _, ok := err.(interp.ExitStatus); ok {
			err = nil
		}
		out = s.out.String()
		if complaint := s.errs.String(); err == nil && complaint != "" {
			err = fmt.Errorf("on stderr: %s", complaint)
		}
		if err != nil {
			break
		}
	}
	return out, err
}

// pipeline is the commands of one. They run one after the other: one that waited
// for its input at a real pipe would hold up the fake clock.
func pipeline(stmt *syntax.Stmt) []syntax.Node {
	if pipe, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe {
		return append(pipeline(pipe.X), pipeline(pipe.Y)...)
	}
	return []syntax.Node{stmt}
}

// pipeIn is a pipe within a command, nil if there is none.
func pipeIn(node syntax.Node) (found syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		if pipe, ok := n.(*syntax.BinaryCmd); ok && (pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll) {
			found = pipe
		}
		return true
	})
	return found
}

func sleep(ctx context.Context, args []string, _ io.Reader, _, stderr io.Writer) int {
	seconds, err := strconv.ParseFloat(strings.Join(args[1:], " "), 64)
	if err != nil {
		fmt.Fprintf(stderr, "sleep: %v: want a number of seconds\n", args[1:])
		return 1
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return 0
	case <-ctx.Done():
		return 1
	}
}
