package main

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/storefront/internal/transcript"
)

var update = flag.Bool("update", false, "rewrite the output on the pages")

// Every command of the README and the lessons that is this program must print what
// stands there.
func TestPagesPrintWhatTheySay(t *testing.T) {
	files, err := transcript.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		blocks, err := transcript.Blocks(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range slices.Backward(blocks) { // as an update moves lines
			if b.Lang != "console" {
				continue
			}
			steps, err := b.Steps()
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range slices.Backward(steps) {
				args, ok := strings.CutPrefix(step.Command, "go run ./cmd/backpressure")
				if !ok {
					continue
				}
				ran++
				synctest.Test(t, func(t *testing.T) {
					var stdout, stderr bytes.Buffer
					run(strings.Fields(args), nil, &stdout, &stderr)
					got := stdout.String()
					switch {
					case transcript.Matches(step.Want, got) && stderr.Len() == 0:
					case *update && stderr.Len() == 0:
						if err := transcript.Update(b.File, step, got); err != nil {
							t.Fatal(err)
						}
					default:
						t.Errorf("%s:%d: $ %s\ngot:\n%s%s\nwant:\n%s", b.File, step.Line, step.Command, got, &stderr, step.Want)
					}
				})
			}
		}
	}
	if ran < 4 {
		t.Errorf("%d commands ran: are they still found?", ran)
	}
}
