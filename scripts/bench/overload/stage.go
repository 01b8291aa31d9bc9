package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"example.com/storefront/internal/storefront"
)

// What can be done: so many at once for so long each.
const (
	places   = 10
	work     = 100 * time.Millisecond
	capacity = 100 // a second
)

// stage is a storefront and the dependency behind its /checkout, each on a socket.
type stage struct {
	dependency *dependency
	behind     *httptest.Server
	front      *httptest.Server
}

func newStage(cfg storefront.Config) (*stage, error) {
	s := &stage{dependency: &dependency{workers: make(chan struct{}, places)}}
	s.behind = httptest.NewServer(s.dependency)
	cfg.FlakyURL = s.behind.URL
	cfg.Log = slog.New(slog.DiscardHandler)
	handler, err := storefront.New(cfg)
	if err != nil {
		s.behind.Close()
		return nil, err
	}
	s.front = httptest.NewServer(handler)
	return s, nil
}

// close ends what is under way.
func (s *stage) close() {
	s.front.CloseClientConnections()
	s.behind.CloseClientConnections()
	s.front.Close()
	s.behind.Close()
}

// idle waits until all work has ended, that which nobody waits for any more too.
func (s *stage) idle(ctx context.Context) error {
	for {
		var status struct {
			InFlight struct {
				InUse int `json:"in_use"`
			} `json:"in_flight"`
		}
		resp, err := http.Get(s.front.URL + "/status")
		if err != nil {
			return err
		}
		err = json.NewDecoder(resp.Body).Decode(&status)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if status.InFlight.InUse == 0 && len(s.dependency.workers) == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for work to end: %w", ctx.Err())
		}
	}
}

// transition is what /events tells of a breaker.
type transition struct {
	At time.Time `json:"at"`
	To string    `json:"to"`
}

// transitions are those of now on, until ctx ends.
func (s *stage) transitions(ctx context.Context) (<-chan transition, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+"/events", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	all := make(chan transition, 100) // more than there will be
	go func() {
		defer close(all)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20) // a snapshot is long
		for event := ""; lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			var t transition
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == "transition" && json.Unmarshal([]byte(data), &t) == nil {
				all <- t
			}
		}
	}()
	return all, nil
}

// How a dependency does.
const (
	healthy int32 = iota
	failing
	hanging
)

// dependency works on a few requests at once, in the order in which they come. The others
// wait, however many they are, as they do in most servers. A caller that has left is not
// waited for, but what has been begun is worked on to its end.
type dependency struct {
	workers  chan struct{}
	state    atomic.Int32
	requests atomic.Int64
}

func (d *dependency) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests.Add(1)
	switch d.state.Load() {
	case failing:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case hanging:
		<-r.Context().Done()
		return
	}
	select {
	case d.workers <- struct{}{}:
		defer func() { <-d.workers }()
		time.Sleep(work)
		io.WriteString(w, `{"paid":true}`)
	case <-r.Context().Done():
	}
}
