package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/transcript"
)

// The log lines that a page shows are ones that its own servers write; the events
// of the README, ones of an outage.
func TestPagesShowLinesThatAreReallyWritten(t *testing.T) {
	var events []string
	synctest.Test(t, func(t *testing.T) { events = eventsOfAnOutage(t) })
	found := 0
	for _, file := range pages(t) {
		var written []string
		synctest.Test(t, func(t *testing.T) {
			term := newFake(t)
			term.flags = []string{"-log-level", "debug"}
			read(t, term, file, 0)
			term.close(t)
			written = slices.Concat(events, strings.Split(term.log.String(), "\n"))
		})
		for _, b := range pageBlocks(t, file) {
			for i, line := range b.Lines {
				if b.Lang != "text" || !regexp.MustCompile("^(time=|event: |data: )").MatchString(line) {
					continue
				}
				found++
				if !slices.ContainsFunc(written, func(w string) bool { return transcript.Matches(line, w) }) {
					t.Errorf("%s:%d: nothing like this is written: %s", file, b.Line+1+i, line)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d lines: are the blocks still found?", found)
	}
}

// eventsOfAnOutage are the lines of /events while /flaky fails for a while.
func eventsOfAnOutage(t *testing.T) []string {
	p := start(new(memnet.Network), nil, "-retry-attempts", "3", "-breaker-failures", "1")
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
	return strings.Split(<-stream, "\n")
}
