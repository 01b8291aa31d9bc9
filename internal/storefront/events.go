package storefront

import (
	"bytes"
	"encoding/json"
	"net/http"
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

// events streams what happens, as server-sent events, until the reader or the
// service goes.
func (s *service) events(w http.ResponseWriter, r *http.Request) error {
	return s.streams.Do(r.Context(), shed.DefaultUrgency, func() error {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			s.stream(r, &stream{w, http.NewResponseController(w)})
		}
		return nil
	})
}

// stream sends a snapshot, then each event, and a snapshot again every second in which
// one has changed.
func (s *service) stream(r *http.Request, out *stream) {
	events, stop := s.watch.Watch()
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
		case <-s.drain.started:
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

// stream writes server-sent events:
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type stream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (s *stream) send(e observe.Event) error {
	return s.write("event: " + e.Name + "\ndata: " + string(e.Data) + "\n\n")
}

func (s *stream) comment(text string) error { return s.write(": " + text + "\n\n") }

// write gives the reader time of its own: the server's WriteTimeout is for answers
// that end.
func (s *stream) write(text string) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.controller.Flush()
}
