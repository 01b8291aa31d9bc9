// Storefront shows the resilience patterns for calls between services, live.
package main

import (
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(process{
		args:    os.Args[1:],
		getenv:  os.Getenv,
		listen:  net.Listen,
		signals: signals,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
	}.run())
}
