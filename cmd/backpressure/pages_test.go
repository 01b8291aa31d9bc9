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
	const program = "go run ./cmd/backpressure"
	steps, err := transcript.Commands("../..", program)
	if err != nil || len(steps) < 4 {
		t.Fatalf("%d commands, %v: are they still found?", len(steps), err)
	}
	for _, step := range slices.Backward(steps) { // as an update moves lines
		synctest.Test(t, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			run(strings.Fields(strings.TrimPrefix(step.Command, program)), nil, &stdout, &stderr)
			got := stdout.String() + stderr.String()
			if diff := step.Differs(got); diff != "" && !*update {
				t.Error(diff)
			} else if diff != "" {
				if err := step.Update(got); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
