// Command table runs the benchmarks of this project and those beside its peers, several
// times over, and prints one table in Markdown: of each figure the median, beside its goal.
// It is to be run in scripts/bench.
//
//	go run ./table [-count 5] [-benchtime 2s]
//
// It exits with 0 also where a goal is missed, as machines are noisy.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

func main() {
	count := flag.Int("count", 5, "how often to run each benchmark")
	benchtime := flag.String("benchtime", "2s", "how long each time, as go test has it")
	flag.Parse()
	if err := run(os.Stdout, *count, *benchtime); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, count int, benchtime string) error {
	var all results
	for _, in := range [][2]string{{"../..", "./internal/..."}, {".", "./peers"}} {
		cmd := exec.Command("go", "test", "-run", "^$", "-bench", ".", "-count", fmt.Sprint(count), "-benchtime", benchtime, in[1])
		cmd.Dir, cmd.Stderr = in[0], os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
		if err := all.add(bytes.NewReader(out)); err != nil {
			return err
		}
	}
	about, err := all.machine()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s; medians of %d runs\n\n", about, count)
	return print(w, slices.DeleteFunc(slices.Clone(groups), skipped), all.values)
}

// skipped says whether a group has no figures as a program is not here, and tells so.
func skipped(g group) bool {
	if g.needs == "" {
		return false
	}
	_, err := exec.LookPath(g.needs)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: not measured: %s: needs %s\n", g.title, g.needs)
	}
	return err != nil
}

// results are those of several runs.
type results struct {
	values map[string][]float64 // by benchmark and unit, as in "Allow/1000 bytes/key"
	cpu    string
}

// add reads what go test has printed.
func (r *results) add(out io.Reader) error {
	if r.values == nil {
		r.values = map[string][]float64{}
	}
	reader := benchfmt.NewReader(out, "")
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return rec
		case *benchfmt.Result:
			r.cpu = strings.TrimSpace(rec.GetConfig("cpu")) // some processors pad it
			name := strings.TrimSuffix(string(rec.Name), fmt.Sprint("-", runtime.GOMAXPROCS(0)))
			for _, v := range rec.Values {
				// As it was printed: benchfmt has seconds for ns.
				value, unit := v.OrigValue, v.OrigUnit
				if unit == "" {
					value, unit = v.Value, v.Unit
				}
				r.values[name+" "+unit] = append(r.values[name+" "+unit], value)
			}
		}
	}
	return reader.Err()
}

// machine is where the figures are from, and of which versions.
func (r *results) machine() (string, error) {
	about := fmt.Sprintf("%s %s/%s on %d processors (%s)", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), r.cpu)
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "github.com/sony/gobreaker/v2", "golang.org/x/time", "golang.org/x/sync",
		"github.com/go-chi/chi/v5", "github.com/failsafe-go/failsafe-go", "github.com/sethvargo/go-limiter", "github.com/gomodule/redigo")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", cmd, err)
	}
	return about + ", " + strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), ", "), nil
}

// print prints a line for each row of the table, or an error that names the figure that no
// benchmark has reported.
func print(w io.Writer, groups []group, values map[string][]float64) error {
	fmt.Fprint(w, "| | | each | ratio | goal |\n|---|---|---|---|---|\n")
	for _, group := range groups {
		for i, row := range group.rows {
			title := ""
			if i == 0 {
				title = group.title
			}
			cells := map[string]string{}
			for _, figure := range row.figures {
				seen, ok := values[figure.of]
				if !ok {
					return fmt.Errorf("no benchmark has reported %q", figure.of)
				}
				cells[figure.column] = figure.join(cells[figure.column], median(seen))
				if figure.goal > 0 {
					cells["goal"] = join(cells["goal"], figure.verdict(median(seen)))
				}
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", title, row.what, cells["each"], cells["ratio"], cells["goal"])
		}
	}
	return nil
}

func (f figure) join(before string, value float64) string { return join(before, f.format(value)) }

func (f figure) verdict(value float64) string {
	met := "met"
	if value > f.goal {
		met = "**missed**"
	}
	return fmt.Sprintf("%s at most: %s", f.format(f.goal), met)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func median(numbers []float64) float64 {
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}
