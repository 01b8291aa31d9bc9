// Backpressure shows a bounded queue between a producer and a consumer, and
// three things to do when it is full: drop, wait, or wait for a while.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(os.Args[1:], signals, os.Stdout, os.Stderr))
}
