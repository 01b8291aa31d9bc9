package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"example.com/storefront/internal/storefront"
)

// Exit codes.
const (
	exitOK    = 0 // a clean drain, or what was asked for was printed
	exitError = 1 // a runtime error, a drain that ran out of time, a second signal
	exitUsage = 2 // bad flags or environment
)

// process is the program with all that it takes from outside, so that tests can
// run the whole of it.
type process struct {
	args           []string
	getenv         func(string) string
	listen         func(network, address string) (net.Listener, error)
	signals        <-chan os.Signal
	stdout, stderr io.Writer
	setLog         func(*slog.Logger) // given the log; nil ignores it
}

// run returns the exit code.
func (p process) run() int {
	opts, err := parse(p.args, p.getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(p.stdout)
		return exitOK
	case err != nil:
		fmt.Fprintf(p.stderr, "%v\nstorefront -h shows the flags\n", err)
		return exitUsage
	case opts.version:
		fmt.Fprintln(p.stdout, "storefront", version(), runtime.Version())
		return exitOK
	}
	switch err := p.serve(opts); {
	case err == nil:
		return exitOK
	case errors.Is(err, errCutOff):
		return exitError // in silence: stderr may be what everything waits for
	default:
		fmt.Fprintln(p.stderr, "storefront:", err)
		return exitError
	}
}

var errCutOff = errors.New("stopped in the middle of the drain")

// serve listens, says where, and runs the service until a signal has drained it.
func (p process) serve(opts options) error {
	ln, err := p.listen("tcp", opts.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: stop what runs there, or try -addr 127.0.0.1:0 for a free port", opts.addr)
	}
	if err != nil {
		return err
	}
	opts.service.Log = opts.logger(p.stderr)
	if p.setLog != nil {
		p.setLog(opts.service.Log)
	}

	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	done := make(chan error, 1)
	go func() { done <- storefront.Serve(ctx, ln, opts.service) }()
	fmt.Fprintf(p.stdout, "storefront listens on %s\n", url(ln.Addr()))

	select {
	case err := <-done:
		return err
	case <-p.signals:
		drain()
	}
	select {
	case err := <-done:
		return err
	case <-p.signals:
		return errCutOff
	case <-time.After(opts.service.DrainTimeout + 2*time.Second): // a log that nobody reads holds up all else
		return errCutOff
	}
}

func (o options) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.logLevel)) // validate has seen it
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readableDuration}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// readableDuration writes 1.5s in JSON too, not 1500000000.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// url is where a browser on this machine finds addr.
func url(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
