package storefront

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/memnet"
	"example.com/storefront/internal/simulator"
)

// eventStream is a reader of /events.
type eventStream struct {
	close func()

	mu    sync.Mutex
	lines []received // guarded by mu
	end   error      // guarded by mu; how the other side ended it
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
		lines := bufio.NewReader(resp.Body)
		var e received
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.end = err
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
	return s.end != nil
}

func TestSnapshotsComeEveryQuarterSecondWhileAnythingChanges(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		stream := w.openStream()
		first := stream.take()[0]
		time.Sleep(15*time.Second - 1)
		if got := stream.take(); len(got) != 0 {
			w.Errorf("nothing happens: %v", got)
		}
		for _, want := range []time.Duration{15 * time.Second, 30 * time.Second} { // of silence
			time.Sleep(15 * time.Second)
			if got := stream.take(); len(got) != 1 || got[0].name != "snapshot" || got[0].data != first.data || got[0].at.Sub(w.start) != want {
				w.Errorf("%v, want the first snapshot again after %v", got, want)
			}
		}
		w.fault(flaky, simulator.Fault{Script: "F"})
		for range 3 {
			w.get("/checkout")
		}
		stream.take()
		opened := time.Now()
		time.Sleep(20 * time.Second)
		var snapshots []received
		for _, e := range stream.take() {
			if e.name == "snapshot" {
				snapshots = append(snapshots, e)
			}
		}
		// For 10 s the time to the probe falls, and the budget's window rolls on.
		for i, e := range snapshots {
			if i > 0 && e.at.Sub(snapshots[i-1].at) != 250*time.Millisecond {
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
		time.Sleep(10*time.Second - time.Nanosecond) // the time for it to read what it was sent
		if got := w.service.streams.Snapshot().InUse; got != 2 {
			w.Errorf("%d streams before 10 s, want 2", got)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
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
		stuck.SetReadDeadline(time.Now().Add(time.Minute))
		read, err := io.ReadAll(stuck) // at last
		if errors.Is(err, os.ErrDeadlineExceeded) || w.service.streams.Snapshot().InUse != 0 || len(read) == 0 {
			w.Errorf("%d bytes, then %v; %d streams left", len(read), err, w.service.streams.Snapshot().InUse)
		}
		if strings.HasSuffix(string(read), "\r\n0\r\n\r\n") {
			w.Error("the cut looks like an end")
		}
	})
}

// However long a stream has been silent, it ends well, and while accepted work goes on.
func TestADrainEndsStreamsAtOnce(t *testing.T) {
	for _, silent := range []time.Duration{0, time.Second, 11 * time.Second, 16 * time.Second, 26 * time.Second} {
		inBubble(t, Config{}, func(w *world) {
			stream := w.openStream()
			time.Sleep(silent)
			slow := w.begin(w.Context(), "/slow")
			time.Sleep(500 * time.Millisecond)
			w.stop()
			if !stream.hasEnded() || stream.end != io.EOF || w.service.events.HasSubscribers() {
				w.Errorf("after %v of silence: ended %v with %v", silent, stream.hasEnded(), stream.end)
			}
			w.want(<-slow, "200 done")
		})
	}
}

func TestADrainWaitsASecondForAStreamThatNobodyReads(t *testing.T) {
	inBubble(t, Config{SlowWork: 8 * time.Second}, func(w *world) {
		stuck := w.dial()
		io.WriteString(stuck, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		slow := w.begin(w.Context(), "/slow")
		w.stop()
		time.Sleep(time.Second + time.Nanosecond)
		synctest.Wait()
		if got := w.service.streams.Snapshot().InUse; got != 0 {
			w.Errorf("%d streams a second after the drain began", got)
		}
		w.want(<-slow, "200 done")
	})
}

// Nor do events that still wait for it give such a reader more time.
func TestADrainWaitsASecondForAStreamThatIsReadTooSlowly(t *testing.T) {
	for range 20 { // it used to depend on what select chose
		inBubble(t, Config{SlowWork: 8 * time.Second, LimitBurst: 100}, func(w *world) {
			conn := w.dial()
			io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			synctest.Wait()
			for range 50 {
				w.get("/limited")
			}
			slow := w.begin(w.Context(), "/slow")
			w.stop()
			time.Sleep(500 * time.Millisecond)
			buf := make([]byte, 512)
			for range 20 { // the snapshot, say, and some events
				if _, err := conn.Read(buf); err != nil {
					break // it chose to end
				}
			}
			time.Sleep(500*time.Millisecond + time.Nanosecond)
			synctest.Wait()
			if got := w.service.streams.Snapshot().InUse; got != 0 {
				w.Errorf("%d streams a second after the drain began", got)
			}
			w.want(<-slow, "200 done")
		})
	}
}

// deadlines records those that are set.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.set = append(d.set, t); return nil }

func TestTheEndOfAStreamIsOneThatItsWritesCannotMove(t *testing.T) {
	d := &deadlines{}
	e := &eventWriter{w: d, controller: http.NewResponseController(d)}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	e.deadline(at(10))
	e.deadline(time.Time{})
	e.endBy(at(5))
	e.deadline(at(15))
	e.deadline(time.Time{})
	e.deadline(at(4))
	e.close()
	e.endBy(at(3)) // the handler has returned: over HTTP/2 there is nothing left to set it on
	if want := []time.Time{at(10), {}, at(5), at(5), at(5), at(4)}; !slices.Equal(d.set, want) {
		t.Errorf("%v, want %v", d.set, want)
	}
}

// In HTTP/2 a write deadline that passes ends a stream, though nothing is written.
func TestASilentStreamStaysOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		var network memnet.Network
		ln, err := network.Listen("tcp", "127.0.0.1:3000")
		if err != nil {
			t.Fatal(err)
		}
		var http2 http.Protocols
		http2.SetUnencryptedHTTP2(true)
		srv := &http.Server{Handler: h, Protocols: &http2}
		go srv.Serve(ln)
		defer srv.Close()
		transport := &http.Transport{DialContext: network.DialContext, Protocols: &http2}
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", self+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if resp.ProtoMajor != 2 || !errors.Is(err, context.DeadlineExceeded) || strings.Count(string(body), "event: snapshot\n") != 4 {
			t.Errorf("HTTP/%d: %v after\n%s", resp.ProtoMajor, err, body)
		}
	})
}

// A server may know no deadlines: it gets its events all the same.
func TestEventsWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/events", nil))
		if got := rec.Body.String(); !strings.HasPrefix(got, "event: snapshot\ndata: {") || strings.Count(got, "event: snapshot\n") != 2 {
			t.Errorf("%q", got)
		}
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
		if w.service.events.HasSubscribers() || w.service.streams.Snapshot().InUse != 0 {
			w.Error("somebody watches")
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		var streams []*eventStream
		for range 100 {
			streams = append(streams, w.openStream())
		}
		got := w.get("/events")
		w.want(got, "503 busy")
		if got.header.Get("Retry-After") != "1" || w.scrape()[`shed_rejected_total{route="/events"}`] != "1" {
			w.Errorf("%v", got.header)
		}
		if told := streams[0].take(); !strings.Contains(told[len(told)-1].data, `"by":"streams","decision":"rejected"`) {
			w.Errorf("told %v", told[len(told)-1])
		}
		if part := `"streams":{"permits":100,"in_use":100,"queue":0,"waiting":0,"rejected":1}`; !strings.Contains(w.get("/status").body, part) {
			w.Errorf("/status lacks %s", part)
		}
		streams[0].close()
		synctest.Wait()
		streams = append(streams, w.openStream())
		for _, s := range streams {
			s.close()
		}
		synctest.Wait()
		if w.service.events.HasSubscribers() {
			w.Error("readers that have left are still subscribed")
		}
	})
}
