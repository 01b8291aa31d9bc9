// Storefront shows the resilience patterns for calls between services, live.
package main

import (
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // a log whose reader has gone does not end the service
	os.Exit(process{
		args:    os.Args[1:],
		getenv:  os.Getenv,
		listen:  net.Listen,
		signals: signals,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		setLog:  slog.SetDefault, // net/http's client logs there
	}.run())
}
