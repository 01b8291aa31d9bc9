package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"example.com/storefront/internal/queue"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // a second signal
	exitUsage = 2
)

// options is what the flags say.
type options struct {
	capacity, events int
	policy           string
	timeout, work    time.Duration
}

// run returns the exit code.
func run(args []string, signals <-chan os.Signal, stdout, stderr io.Writer) int {
	opts, fs, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(stdout)
		fs.Usage()
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "%v\nbackpressure -h shows the flags\n", err)
		return exitUsage
	}
	events, err := queue.New[int](opts.capacity)
	if err != nil {
		fmt.Fprintln(stderr, "backpressure:", err)
		return exitError
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		pipeline(opts, events, stdout)
	}()
	for range 2 {
		select {
		case <-done:
			return exitOK
		case <-signals:
			events.Close() // what was accepted is still received
		}
	}
	fmt.Fprintln(stderr, "backpressure: second signal: stopped without draining")
	return exitError
}

// pipeline produces and consumes all events, and prints what became of them.
func pipeline(opts options, events *queue.Queue[int], stdout io.Writer) {
	var received []string
	var consumer sync.WaitGroup
	consume := func() {
		for n, ok := events.Receive(); ok; n, ok = events.Receive() {
			time.Sleep(opts.work)
			received = append(received, fmt.Sprint(n))
		}
	}
	// To drop, no consumer runs beside the producer: which events find no room
	// must not depend on timing.
	if opts.policy != "drop" {
		consumer.Go(consume)
	}
	for n := 1; n <= opts.events; n++ {
		fmt.Fprintf(stdout, "event %d%s\n", n, outcome(opts, events, n))
	}
	events.Close()
	if opts.policy == "drop" {
		consumer.Go(consume)
	}
	consumer.Wait()
	fmt.Fprintf(stdout, "consumer received [%s]\n", strings.Join(received, ", "))
}

// outcome sends event n as the policy says, and returns what became of it as
// the end of the line "event n…".
func outcome(opts options, events *queue.Queue[int], n int) string {
	err := send(opts, events, n)
	switch {
	case err == nil:
		return " queued"
	case errors.Is(err, queue.ErrClosed):
		return ": consumer stopped"
	case errors.Is(err, queue.ErrFull):
		return " dropped: queue full"
	default:
		return fmt.Sprintf(" dropped: no room after %v", opts.timeout)
	}
}

func send(opts options, events *queue.Queue[int], n int) error {
	switch opts.policy {
	case "drop":
		return events.TrySend(n)
	case "wait":
		return events.Send(context.Background(), n)
	default:
		ctx, cancel := context.WithTimeout(context.Background(), opts.timeout)
		defer cancel()
		return events.Send(ctx, n)
	}
}

// parse returns flag.ErrHelp, the first value that does not parse, or all
// values out of range.
func parse(args []string) (options, *flag.FlagSet, error) {
	var o options
	fs := flag.NewFlagSet("backpressure", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints errors and help
	fs.IntVar(&o.capacity, "capacity", 2, "events that the queue has room for")
	fs.IntVar(&o.events, "events", 4, "events to produce")
	fs.StringVar(&o.policy, "policy", "drop", "`policy` when the queue is full: drop, wait or timeout")
	fs.DurationVar(&o.timeout, "timeout", 50*time.Millisecond, "how long the policy timeout waits for room")
	fs.DurationVar(&o.work, "work", 0, "how long the consumer works on an event")
	if err := fs.Parse(args); err != nil {
		return o, fs, err
	}
	if fs.NArg() > 0 {
		return o, fs, fmt.Errorf("unexpected argument %q: every setting is a flag", fs.Arg(0))
	}
	return o, fs, o.validate()
}

func (o options) validate() error {
	const many, long = 1_000_000, time.Hour
	var errs []error
	check := func(name string, ok bool, value any, problem string) {
		if !ok {
			errs = append(errs, fmt.Errorf("-%s: %v %s", name, value, problem))
		}
	}
	check("capacity", o.capacity >= 1 && o.capacity <= many, o.capacity, "is out of range, 1 to 1000000")
	check("events", o.events >= 0 && o.events <= many, o.events, "is out of range, 0 to 1000000")
	check("policy", o.policy == "drop" || o.policy == "wait" || o.policy == "timeout", o.policy, "is not drop, wait or timeout")
	check("timeout", o.timeout > 0 && o.timeout <= long, o.timeout, "is out of range, 1ns to 1h")
	check("work", o.work >= 0 && o.work <= long, o.work, "is out of range, 0s to 1h")
	return errors.Join(errs...)
}
