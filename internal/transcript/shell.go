package transcript

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Shell runs commands as bash does, with loops, jobs and subshells, but the only
// programs it knows are its own. It works under testing/synctest.
type Shell struct {
	runner *interp.Runner
	out    Buffer
	errs   Buffer
}

// NewShell returns a shell that knows these commands, and sleep.
func NewShell(commands map[string]Command) (*Shell, error) {
	s := &Shell{}
	exec := func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
		return func(ctx context.Context, args []string) error {
			command := commands[args[0]]
			if args[0] == "sleep" {
				command = sleep
			}
			if command == nil {
				return fmt.Errorf("%s is not a command of this shell", args[0])
			}
			hc := interp.HandlerCtx(ctx)
			if code := command(ctx, args, hc.Stdout, hc.Stderr); code != 0 {
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
	s.out.Reset()
	s.errs.Reset()
	err = s.runner.Run(ctx, file)
	if _, ok := err.(interp.ExitStatus); ok {
		err = nil
	}
	if complaint := s.errs.String(); err == nil && complaint != "" {
		err = fmt.Errorf("on stderr: %s", complaint)
	}
	return s.out.String(), err
}

func sleep(ctx context.Context, args []string, _, stderr io.Writer) int {
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
