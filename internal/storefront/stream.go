package storefront

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"example.com/storefront/internal/observe"
	"example.com/storefront/internal/shed"
)

const (
	maxStreams    = 100 // at once
	snapshotEvery = time.Second
	heartbeat     = 15 * time.Second // of silence; proxies tend to cut at 30 s or 60 s
	streamTimeout = 10 * time.Second // for a reader to take what it is sent
)

// stream sends what happens, as server-sent events, until the reader or the
// service goes.
func (s *service) stream(w http.ResponseWriter, r *http.Request) error {
	err := s.streams.Do(r.Context(), shed.DefaultUrgency, func() error {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			s.streamTo(&eventWriter{w: w, controller: http.NewResponseController(w)}, r)
		}
		return nil
	})
	s.recordShed(err, "/events", "streams")
	return err
}

// streamTo sends a snapshot, then each event, and every second a snapshot again if it
// differs from the last.
func (s *service) streamTo(out *eventWriter, r *http.Request) {
	events, unsubscribe := s.events.Subscribe()
	defer unsubscribe()
	// A reader that takes nothing must not hold up the drain.
	stop := context.AfterFunc(s.drain.started, func() { out.endBy(time.Now().Add(time.Second)) })
	defer out.close()
	defer stop()
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	last, silentSince := s.encoded(), time.Now()
	err := out.send(observe.Event{Name: "snapshot", Data: last})
	for err == nil {
		select {
		case e, ok := <-events:
			if !ok {
				panic(http.ErrAbortHandler) // it has fallen behind, and would not read a farewell either
			}
			err = out.send(e)
		case <-tick.C:
			now := s.encoded()
			switch {
			case !bytes.Equal(now, last):
				last = now
				err = out.send(observe.Event{Name: "snapshot", Data: now})
			case time.Since(silentSince) >= heartbeat:
				err = out.comment("heartbeat")
			default:
				continue
			}
		case <-r.Context().Done():
			return
		case <-s.drain.started.Done():
			return
		}
		silentSince = time.Now()
	}
}

func (s *service) encoded() []byte {
	body, err := json.Marshal(s.snapshot())
	if err != nil {
		panic(err) // a mistake in the code
	}
	return body
}

// eventWriter writes server-sent events:
// https://html.spec.whatwg.org/multipage/server-sent-events.html
//
// Each write has a deadline of its own, and there is none in between: the server's
// WriteTimeout is for answers that end. A server without deadlines does without.
type eventWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController

	mu     sync.Mutex
	end    time.Time // guarded by mu; of all writes, if it is set
	closed bool      // guarded by mu; the handler may have returned
}

func (e *eventWriter) send(event observe.Event) error {
	return e.write("event: " + event.Name + "\ndata: " + string(event.Data) + "\n\n")
}

func (e *eventWriter) comment(text string) error { return e.write(": " + text + "\n\n") }

func (e *eventWriter) write(text string) error {
	e.deadline(time.Now().Add(streamTimeout))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := e.controller.Flush(); err != nil {
		return err
	}
	e.deadline(time.Time{})
	return nil
}

// endBy bounds the write under way, and those to come. It may be called at any time.
func (e *eventWriter) endBy(t time.Time) {
	e.mu.Lock()
	e.end = t
	e.mu.Unlock()
	e.deadline(t)
}

func (e *eventWriter) deadline(t time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.end.IsZero() && (t.IsZero() || t.After(e.end)) {
		t = e.end
	}
	if !e.closed {
		_ = e.controller.SetWriteDeadline(t) // an error means that there is none to set
	}
}

// close must be called before the handler returns: nothing is left to set after that.
func (e *eventWriter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}
