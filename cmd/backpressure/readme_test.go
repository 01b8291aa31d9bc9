package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/storefront/internal/transcript"
)

// Every console block of the README that runs this program must print what
// stands there.
func TestReadmePrintsWhatItSays(t *testing.T) {
	blocks, err := transcript.Blocks("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, b := range blocks {
		if b.Lang != "console" || !strings.HasPrefix(b.Lines[0], "$ go run ./cmd/backpressure") {
			continue
		}
		steps, err := b.Steps()
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			args, ok := strings.CutPrefix(step.Command, "go run ./cmd/backpressure")
			if !ok {
				t.Errorf("%s:%d: %s is not this program", b.File, step.Line, step.Command)
				continue
			}
			ran++
			synctest.Test(t, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				run(strings.Fields(args), nil, &stdout, &stderr)
				if got := stdout.String(); !transcript.Matches(step.Want, got) || stderr.Len() > 0 {
					t.Errorf("%s:%d: $ %s\ngot:\n%s%s\nwant:\n%s", b.File, step.Line, step.Command, got, &stderr, step.Want)
				}
			})
		}
	}
	if ran == 0 {
		t.Error("the README does not run this program")
	}
}
