package storefront

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"example.com/storefront/internal/observe"
	"example.com/storefront/internal/shed"
)

const (
	maxStreams    = 100                    // at once
	lookEvery     = 250 * time.Millisecond // whether anything has changed
	heartbeat     = 15 * time.Second       // of silence; proxies tend to cut at 30 s or 60 s
	streamTimeout = 10 * time.Second       // for a reader to take what it is sent
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

// streamTo sends a snapshot, what has happened of late, and then each event and whatever
// of the snapshot and the timeline has changed.
func (s *service) streamTo(out *eventWriter, r *http.Request) {
	before, events, unsubscribe := s.events.Subscribe()
	defer unsubscribe()
	// A reader that takes nothing must not hold up the drain.
	stop := context.AfterFunc(s.drain.started, func() { out.endBy(time.Now().Add(time.Second)) })
	defer out.close()
	defer stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	look := looker{service: s, r: r}
	err, silentSince := out.send(slices.Concat(look.snapshot(true), before, look.timeline())...), time.Now()
	for err == nil {
		var changed []observe.Event
		select {
		case e, ok := <-events:
			if !ok {
				panic(http.ErrAbortHandler) // it has fallen behind, and would not read a farewell either
			}
			changed = []observe.Event{e}
			if e.Name == "reset" {
				look.seconds = nil // the reader, too, forgets what it has been sent
			}
		case <-tick.C:
			changed = append(look.snapshot(time.Since(silentSince) >= heartbeat), look.timeline()...)
		case <-r.Context().Done():
			return
		case <-s.drain.started.Done():
			return
		}
		if len(changed) > 0 {
			err, silentSince = out.send(changed...), time.Now()
		}
	}
}

// looker knows what one reader has been sent.
type looker struct {
	service *service
	r       *http.Request

	status  []byte
	from    time.Time        // of the timeline: what was before has been sent
	seconds []observe.Second // of the timeline, as sent: those since from, or more
}

// snapshot is one if it differs from the last, or must be.
func (l *looker) snapshot(must bool) []observe.Event {
	now := marshal(l.service.snapshot(l.r))
	if !must && bytes.Equal(now, l.status) {
		return nil
	}
	l.status = now
	return []observe.Event{{Name: "snapshot", Data: now}}
}

// timeline is what has changed of it. The first has all.
func (l *looker) timeline() []observe.Event {
	now, first := time.Now(), l.from.IsZero()
	seconds := l.service.timeline.Since(l.from, now)
	changed := slices.DeleteFunc(slices.Clone(seconds), l.knows)
	if !first && len(changed) == 0 {
		return nil
	}
	l.seconds, l.from = seconds, now.Add(-time.Second) // one that has just ended may still get a count
	return []observe.Event{{Name: "timeline", Data: marshal(timelineEvent{now, changed})}}
}

// knows says whether s has been sent as it is.
func (l *looker) knows(s observe.Second) bool {
	return slices.ContainsFunc(l.seconds, func(sent observe.Second) bool {
		return sent.At == s.At && maps.Equal(sent.Counts, s.Counts)
	})
}

func marshal(v any) []byte {
	body, err := json.Marshal(v)
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

func (e *eventWriter) send(events ...observe.Event) error {
	var text []byte
	for _, event := range events {
		text = fmt.Appendf(text, "event: %s\ndata: %s\n\n", event.Name, event.Data)
	}
	e.deadline(time.Now().Add(streamTimeout))
	if _, err := e.w.Write(text); err != nil {
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
