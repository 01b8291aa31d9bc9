package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// filters are the programs for the right side of a pipe, each with the one use of
// it that transcripts make.
var filters = map[string]func(args []string, lines []string) ([]string, error){
	"grep": grep,
	"head": head,
	"sort": sortLines,
}

// filter makes a Command of one of them.
func filter(program func(args, lines []string) ([]string, error)) Command {
	return func(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		in, err := io.ReadAll(stdin)
		if err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", args[0], err)
			return 2
		}
		lines := strings.Split(strings.TrimSuffix(string(in), "\n"), "\n")
		if len(in) == 0 {
			lines = nil
		}
		lines, err = program(args[1:], lines)
		if err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", args[0], err)
			return 2
		}
		for _, line := range lines {
			fmt.Fprintln(stdout, line)
		}
		return 0
	}
}

// special is what basic regular expressions, which grep takes, and Go's read in
// two ways.
var special = regexp.MustCompile(`[\\+?|()$]|(^|[^[])\^|\{[0-9,]`)

// grep -o PATTERN prints each match.
func grep(args, lines []string) ([]string, error) {
	if len(args) != 2 || args[0] != "-o" {
		return nil, errors.New("only -o PATTERN is known")
	}
	if at := special.FindString(args[1]); at != "" {
		return nil, fmt.Errorf("%s in a pattern is not known", at)
	}
	pattern, err := regexp.Compile(args[1])
	if err != nil {
		return nil, err
	}
	var found []string
	for _, line := range lines {
		for _, match := range pattern.FindAllString(line, -1) {
			if match != "" {
				found = append(found, match)
			}
		}
	}
	return found, nil
}

// head -1 prints the first line.
func head(args, lines []string) ([]string, error) {
	if !slices.Equal(args, []string{"-1"}) {
		return nil, errors.New("only -1 is known")
	}
	return lines[:min(len(lines), 1)], nil
}

// sortLines, or sort, prints the lines in order. In which order depends on the language that a
// machine is set to, except for plain ones.
func sortLines(args, lines []string) ([]string, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("%s is not known", strings.Join(args, " "))
	}
	slices.Sort(lines)
	return lines, nil
}
