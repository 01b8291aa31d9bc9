// Command overload shows what the patterns are for: how much of the work gets done, and how
// fast, when more is asked for than can be done. It serves a storefront and a dependency of
// finite capacity on sockets of this machine, loads them for a minute and a half, prints
// figures beside goals, and draws a picture.
//
//	go run ./overload [-step 2.5s] [-picture overload.svg]
//
// It exits with 0 also where a goal is missed, as machines are noisy.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() {
	step := flag.Duration("step", 2500*time.Millisecond, "how long each load lasts, 200ms to 2500ms")
	file := flag.String("picture", "", "`file` for the picture, an SVG; empty for none")
	flag.Parse()
	if *step < 200*time.Millisecond || *step > 2500*time.Millisecond {
		fmt.Fprintf(os.Stderr, "overload: -step: %v is out of range, 200ms to 2500ms\n", *step)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout, *step, *file); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, step time.Duration, file string) error {
	fmt.Fprintf(w, "%s %s/%s on %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	rising, err := risingLoad(ctx, w, step)
	if err != nil {
		return err
	}
	for _, outage := range []func(context.Context, io.Writer, time.Duration) error{hangingDependency, healingDependency, retryStorm} {
		if err := outage(ctx, w, step); err != nil {
			return err
		}
	}
	if file == "" {
		return nil
	}
	return picture(file, rising)
}

// goal prints a figure beside its goal.
func goal(w io.Writer, what string, met bool) {
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	fmt.Fprintf(w, "  %s: %s\n", what, verdict)
}
