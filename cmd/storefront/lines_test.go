package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/transcript"
)

// The log lines and events that the README shows are ones that the program writes.
func TestReadmeShowsLinesThatAreReallyWritten(t *testing.T) {
	blocks, err := transcript.Blocks(readme)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, b := range blocks {
		for _, line := range b.Lines {
			if b.Lang == "text" && (strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "event: ") || strings.HasPrefix(line, "data: ")) {
				shown = append(shown, line)
			}
		}
	}
	if len(shown) < 12 {
		t.Fatalf("%d lines: are the blocks still found?", len(shown))
	}
	var written []string
	for _, args := range [][]string{
		{"-retry-attempts", "3", "-breaker-failures", "1"},
		{"-log-level", "debug", "-retry-budget", "0.001", "-retry-floor", "0.001"},
	} {
		synctest.Test(t, func(t *testing.T) {
			written = append(written, linesOf(t, args)...)
		})
	}
	for _, line := range shown {
		if !slices.ContainsFunc(written, func(w string) bool { return transcript.Matches(line, w) }) {
			t.Errorf("nothing like this is written: %s", line)
		}
	}
}

// linesOf runs a program through an outage of /flaky, and returns its log and its
// events.
func linesOf(t *testing.T, args []string) []string {
	p := start(new(memnet.Network), nil, args...)
	transport := &http.Transport{DialContext: p.DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(method, path, form string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost:3000"+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://localhost:3000/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	stream := make(chan string)
	go func() {
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // until the drain ends it
		stream <- string(body)
	}()

	ask("GET", "/limited", "")
	ask("GET", "/checkout", "")
	ask("PUT", "/faults/flaky", "script=F")
	ask("GET", "/checkout", "")
	time.Sleep(11 * time.Second)
	ask("GET", "/checkout", "")
	ask("DELETE", "/faults", "")
	time.Sleep(11 * time.Second)
	ask("GET", "/checkout", "")
	p.signals <- syscall.SIGTERM
	<-p.code
	return strings.Split(p.stderr.String()+<-stream, "\n")
}
