package exercises

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/transcript"
)

// exercises are the checks of each start and of its answer. They return what is
// wrong, and run under a fake clock.
var exercises = map[string]struct{ start, answer func() error }{
	"timeout":      {func() error { return checkPage(Page) }, func() error { return checkPage(PageAnswer) }},
	"breaker":      {func() error { return checkBreaker(CatalogueBreaker) }, func() error { return checkBreaker(CatalogueBreakerAnswer) }},
	"bulkhead":     {func() error { return checkPools(Pools) }, func() error { return checkPools(PoolsAnswer) }},
	"ratelimit":    {func() error { return checkLimit(NewLimit) }, func() error { return checkLimit(NewLimitAnswer) }},
	"shed":         {func() error { return checkShed(ReportQueue) }, func() error { return checkShed(ReportQueueAnswer) }},
	"backpressure": {func() error { return checkProduce(Produce) }, func() error { return checkProduce(ProduceAnswer) }},
	"combined":     {func() error { return checkCall(Call) }, func() error { return checkCall(CallAnswer) }},
}

var (
	exercise = flag.String("exercise", "", "check this one, as it stands now")
	update   = flag.Bool("update", false, "rewrite the output in the lessons")
)

// With -exercise, that is all that runs.
func TestMain(m *testing.M) {
	flag.Parse()
	if *exercise != "" {
		if err := flag.Set("test.run", "^TestExercise$"); err != nil {
			panic(err)
		}
		time.AfterFunc(10*time.Second, func() {
			fmt.Println("--- FAIL: no end after 10s: a loop that never waits, or never looks at ctx or at an error?")
			os.Exit(1)
		})
	}
	os.Exit(m.Run())
}

func TestExercise(t *testing.T) {
	if *exercise == "" {
		return // see TestMain
	}
	e, ok := exercises[*exercise]
	if !ok {
		t.Fatalf("-exercise %s: there are %s", *exercise, strings.Join(slices.Sorted(maps.Keys(exercises)), ", "))
	}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("something waits for what never comes, or is left behind: %v", p)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		if err := e.start(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheAnswersHold(t *testing.T) {
	for name, e := range exercises {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := e.answer(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Every start fails, and prints what its lesson shows.
func TestTheStartsFailAsTheLessonsShow(t *testing.T) {
	const check = "go test ./scripts/exercises -exercise "
	steps, err := transcript.Commands("../..", check)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, step := range slices.Backward(steps) { // as an update moves lines
		name := strings.TrimPrefix(step.Command, check)
		shown[name] = true
		got, failed := failure(t, name)
		if !failed {
			t.Errorf("%s:%d: the start of %s does not fail; if you have solved it: git checkout scripts/exercises", step.File, step.Line, name)
			continue
		}
		if diff := step.Differs(got); diff != "" && !*update {
			t.Error(diff)
		} else if diff != "" {
			if err := step.Update(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range exercises {
		if !shown[name] {
			t.Errorf("no lesson has the exercise %s", name)
		}
	}
}

// failure is what "go test" prints for the start of an exercise, if it fails.
func failure(t *testing.T, name string) (output string, failed bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-exercise", name).CombinedOutput()
	return fmt.Sprintf("%sFAIL\texample.com/storefront/scripts/exercises\t0.010s\nFAIL\n", out), err != nil
}
