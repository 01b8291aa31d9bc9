package storefront

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
)

// eventStream is a reader of /events.
type eventStream struct {
	close func()

	mu    sync.Mutex
	lines []received // guarded by mu
	ended bool       // guarded by mu; by the other side
}

type received struct {
	at         time.Time
	name, data string
}

// openStream reads /events until it is closed.
func (w *world) openStream() *eventStream {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", self+"/events", nil)
	if err != nil {
		w.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		w.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	s := &eventStream{close: cancel}
	w.cleanup = append(w.cleanup, func() error { cancel(); return nil })
	go func() {
		defer resp.Body.Close()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = true
		}()
		lines := bufio.NewReader(resp.Body)
		var e received
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data += value
			case "":
				if value != "" {
					e = received{name: ":", data: value} // a comment
					continue
				}
				e.at = time.Now()
				s.mu.Lock()
				s.lines = append(s.lines, e)
				s.mu.Unlock()
				e = received{}
			}
		}
	}()
	synctest.Wait()
	return s
}

// take returns what has come since it was last asked.
func (s *eventStream) take() []received {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

func (s *eventStream) hasEnded() bool {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func TestEventsBeginWithASnapshotAndTellEachThing(t *testing.T) {
	cfg := Config{}
	cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	cfg.Flaky.Breaker.Failures = 1
	inBubble(t, cfg, func(w *world) {
		status := w.get("/status").body
		stream := w.openStream()
		first := stream.take()
		if len(first) != 1 || first[0].name != "snapshot" || first[0].data != status {
			w.Fatalf("first %v, want the status %s", first, status)
		}
		at := func(e any) string {
			body, err := json.Marshal(e)
			if err != nil {
				w.Fatal(err)
			}
			return strings.ReplaceAll(string(body), `"at":"0001-01-01T00:00:00Z"`, fmt.Sprintf(`"at":%q`, time.Now().Format(time.RFC3339Nano)))
		}
		check := func(want ...string) {
			w.Helper()
			var got []string
			for _, e := range stream.take() {
				if e.name != "snapshot" {
					got = append(got, e.name+" "+e.data)
				}
			}
			if !slices.Equal(got, want) {
				w.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}

		w.get("/checkout")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Outcome: "ok", Attempts: 3, Breaker: "closed", Took: 300, Steps: []stepEvent{
			{1, "503", 0}, {Took: 100}, {2, "503", 0}, {Took: 200}, {3, "200", 0},
		}}))
		w.fault(flaky, simulator.Fault{Script: "F", Status: 500})
		w.get("/checkout")
		check("transition "+at(transitionEvent{Dependency: "flaky", From: "closed", To: "open"}),
			"call "+at(callEvent{Route: "/checkout", Dependency: "flaky", Outcome: "status_5xx", Attempts: 1, Breaker: "open", Steps: []stepEvent{{1, "500", 0}}}))
		w.get("/checkout")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Outcome: "circuit_open", Breaker: "open", Steps: []stepEvent{}}))
		w.fault(inventory, simulator.Fault{Script: "M"})
		w.get("/stock/mug")
		check("call " + at(callEvent{Route: "/stock/{sku}", Dependency: "inventory", Outcome: "undecodable", Fallback: "default", Attempts: 1, Breaker: "closed", Steps: []stepEvent{{1, "undecodable", 0}}}))
		w.get("/stock/none?without=breaker")
		check("call " + at(callEvent{Route: "/stock/{sku}", Dependency: "inventory", Outcome: "undecodable", Fallback: "default", Attempts: 1, Breaker: "closed", Steps: []stepEvent{{1, "undecodable", 0}}}))
		w.post("/charge", mug)
		check("call " + at(callEvent{Route: "/charge", Dependency: "payments", Outcome: "ok", Attempts: 1, Breaker: "closed", Steps: []stepEvent{{1, "200", 0}}}))
		w.post("/charge", "{}") // no call was made
		check()

		for range 4 {
			w.get("/limited")
		}
		check("decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}), "decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}),
			"decision "+at(decisionEvent{By: "limiter", Decision: "allowed"}), "decision "+at(decisionEvent{By: "limiter", Decision: "rejected"}))
		w.begin(w.Context(), "/slow")
		w.begin(w.Context(), "/slow")
		w.get("/slow")
		check("decision "+at(decisionEvent{By: "slow", Decision: "allowed"}), "decision "+at(decisionEvent{By: "slow", Decision: "allowed"}),
			"decision "+at(decisionEvent{By: "slow", Decision: "rejected"}))

		w.fault(flaky, simulator.Fault{Script: "H"})
		for range 20 {
			w.begin(w.Context(), "/checkout?without=breaker")
		}
		w.get("/checkout?without=breaker")
		check("call " + at(callEvent{Route: "/checkout", Dependency: "flaky", Outcome: "bulkhead_full", Breaker: "open", Steps: []stepEvent{}}))
		w.post("/reset", "")
		check("transition " + at(transitionEvent{Dependency: "flaky", From: "open", To: "closed"}))
	})
}

// Every limit tells its decisions by the name that it has in /status.
func TestEventsOfTheOtherLimits(t *testing.T) {
	inBubble(t, Config{CallerRate: 1, CallerBurst: 5, LimitMaxKeys: 1, LimitBurst: 1, MaxInFlight: 1}, func(w *world) {
		stream := w.openStream()
		for _, key := range []string{"a", "b", "b"} {
			w.get("/limited", "X-API-Key: "+key)
		}
		w.begin(w.Context(), "/slow")
		w.get("/slow", "X-API-Key: a")
		var got []string
		for _, e := range stream.take() {
			var d decisionEvent
			if e.name == "decision" && json.Unmarshal([]byte(e.data), &d) == nil {
				got = append(got, d.By+" "+d.Decision)
			}
		}
		want := []string{
			"callers allowed", "limiter allowed", "callers allowed", "limiter allowed", "callers allowed", "limiter overflow",
			"callers allowed", "slow allowed", "callers allowed", "in_flight rejected",
		}
		if !slices.Equal(got, want) {
			w.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestSnapshotsComeEverySecondWhileAnythingChanges(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		stream := w.openStream()
		stream.take()
		time.Sleep(14500 * time.Millisecond)
		if got := stream.take(); len(got) != 0 {
			w.Errorf("nothing happens: %v", got)
		}
		time.Sleep(time.Second)
		if got := stream.take(); len(got) != 1 || got[0].name != ":" || got[0].at.Sub(w.start) != 15*time.Second {
			w.Errorf("after 15 s of silence: %v, want a heartbeat", got)
		}
		w.fault(flaky, simulator.Fault{Script: "F"})
		for range 3 {
			w.get("/checkout")
		}
		stream.take()
		opened := time.Now()
		time.Sleep(30 * time.Second)
		var snapshots []received
		for _, e := range stream.take() {
			if e.name == "snapshot" {
				snapshots = append(snapshots, e)
			}
		}
		// For 10 s the time to the probe falls, and the budget's window rolls on.
		for i, e := range snapshots {
			if i > 0 && e.at.Sub(snapshots[i-1].at) != time.Second {
				w.Errorf("snapshots %v apart", e.at.Sub(snapshots[i-1].at))
			}
		}
		last := snapshots[len(snapshots)-1]
		if took := last.at.Sub(opened); took < 10*time.Second || took > 12*time.Second || !strings.Contains(last.data, `"probe_due":true`) {
			w.Errorf("the last snapshot came after %v: %s", took, last.data)
		}
	})
}

// A reader that takes nothing holds up nobody, and is dropped.
func TestASlowReaderOfEventsIsDropped(t *testing.T) {
	inBubble(t, Config{LimitBurst: 10_000}, func(w *world) {
		stuck := w.dial()
		io.WriteString(stuck, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		buf := make([]byte, 64)
		stuck.Read(buf) // so that it is served, and now reads no more
		reader := w.openStream()
		start := time.Now()
		for range 3000 {
			w.want(w.get("/limited"), "200 ok")
		}
		if took := time.Since(start); took != 0 {
			w.Errorf("3000 requests took %v beside a slow reader", took)
		}
		told := 0
		for _, e := range reader.take() {
			if e.name == "decision" {
				told++
			}
		}
		if told != 3000 {
			w.Errorf("the other reader got %d decisions, want 3000", told)
		}
		if got := w.service.streams.Snapshot().InUse; got != 2 {
			w.Errorf("%d streams, want 2", got)
		}
		time.Sleep(streamTimeout + time.Nanosecond)
		if got := w.service.streams.Snapshot().InUse; got != 1 {
			w.Errorf("%d streams, want 1", got)
		}
		rest, err := io.ReadAll(stuck)
		if err != nil && !strings.Contains(err.Error(), "closed") {
			w.Error(err)
		}
		if strings.HasSuffix(string(rest), "0\r\n\r\n") {
			w.Error("the cut looks like an end")
		}
	})
}

// One that reads, but too slowly for the events that come, is cut off: what is lost
// would be lost unnoticed.
func TestAReaderThatFallsBehindIsCutOff(t *testing.T) {
	inBubble(t, Config{LimitBurst: 10_000}, func(w *world) {
		stuck := w.dial()
		io.WriteString(stuck, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		for range 3000 {
			w.get("/limited")
		}
		n, err := io.Copy(io.Discard, stuck) // at last
		if w.service.streams.Snapshot().InUse != 0 || n == 0 {
			w.Errorf("%d bytes, then %v; %d streams left", n, err, w.service.streams.Snapshot().InUse)
		}
	})
}

func TestADrainEndsStreamsAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		stream := w.openStream()
		slow := w.begin(w.Context(), "/slow")
		time.Sleep(500 * time.Millisecond)
		w.stop()
		if !stream.hasEnded() {
			w.Error("the stream goes on")
		}
		w.want(<-slow, "200 done") // while accepted work ends
	})
}

func TestHeadOfEventsIsHeadersOnly(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		got := w.send(w.Context(), "HEAD", "/events")
		w.want(got, "200 ")
		if got.header.Get("Content-Type") != "text/event-stream" || time.Since(w.start) != 0 {
			w.Errorf("%v after %v", got.header, time.Since(w.start))
		}
		synctest.Wait()
		if w.service.watch.Watched() || w.service.streams.Snapshot().InUse != 0 {
			w.Error("somebody watches")
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		var streams []*eventStream
		for range maxStreams {
			streams = append(streams, w.openStream())
		}
		got := w.get("/events")
		w.want(got, "503 busy")
		if got.header.Get("Retry-After") != "1" {
			w.Errorf("%v", got.header)
		}
		streams[0].close()
		synctest.Wait()
		w.openStream()
		for _, s := range streams {
			s.close()
		}
	})
}
