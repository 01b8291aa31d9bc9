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

// The log lines that a page shows are ones that its own servers write; the events
// of the README, ones of an outage.
func TestPagesShowLinesThatAreReallyWritten(t *testing.T) {
	var events []string
	synctest.Test(t, func(t *testing.T) { events = eventsOfAnOutage(t) })
	for _, file := range pages(t) {
		var lines []string
		synctest.Test(t, func(t *testing.T) {
			term := newFake(t)
			term.flags = []string{"-log-level", "debug"}
			read(t, term, file, 0)
			term.close(t)
			lines = strings.Split(term.log.String(), "\n")
		})
		for _, b := range pageBlocks(t, file) {
			shown, written := b.Lines, lines
			switch text := strings.Join(b.Lines, "\n"); {
			case b.Lang != "text":
				continue
			case strings.Contains(text, "time="):
			case strings.Contains(text, "event: "):
				shown, written = strings.Split(text, "\n\n"), events
			default:
				continue
			}
			for _, item := range shown {
				if !slices.ContainsFunc(written, func(w string) bool { return transcript.Matches(item, w) }) {
					t.Errorf("%s:%d: nothing like this is written:\n%s", file, b.Line, item)
				}
			}
		}
	}
}

// eventsOfAnOutage are those of /events while /flaky fails for a while.
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
	time.Sleep(time.Second) // or its timeline may never be seen without a failure in the same second
	ask("PUT", "/faults/flaky", "script=F")
	ask("GET", "/checkout", "")
	time.Sleep(11 * time.Second)
	ask("GET", "/checkout", "")
	ask("DELETE", "/faults", "")
	time.Sleep(11 * time.Second)
	ask("GET", "/checkout", "")
	p.signals <- syscall.SIGTERM
	<-p.code
	return strings.Split(<-stream, "\n\n")
}
