package storefront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrDrainTimeout is returned by Serve when accepted work had to be cut off.
var ErrDrainTimeout = errors.New("drain ran out of time")

// Serve runs the service on ln until ctx ends, then drains it: /readyz fails,
// new work gets 503, and the listener stays open until the accepted work has
// ended, because that work still calls the simulators behind it. It returns nil
// after a clean drain, ErrDrainTimeout after cfg.DrainTimeout, or what made
// serving impossible. It closes ln.
func Serve(ctx context.Context, ln net.Listener, cfg Config) error {
	s, err := newService(cfg)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return s.serve(ctx, ln)
}

func (s *service) serve(ctx context.Context, ln net.Listener) error {
	defer func() { _ = s.Close() }() // of connections, whose ends nobody minds
	s.address = ln.Addr()
	var silent silentConns
	srv := &http.Server{
		Handler:     s,
		ReadTimeout: 5 * time.Second, // header and body; see readBody
		// Ends clients that take their answer a byte at a time. It runs while
		// the handler works and must outlast that, or the reply is empty.
		WriteTimeout:   s.longestWork() + 10*time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ConnState:      silent.track,
		// OPTIONS * gets its 404 like any other path that is no route.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.shutdown(srv, &silent)
	})
	return group.Wait()
}

// longestWork is how long a handler may take, its waits included.
func (s *service) longestWork() time.Duration {
	longest := max(s.cfg.SlowMaxWait+s.cfg.SlowWork, s.cfg.Flaky.Bulkhead.MaxWait+s.cfg.Flaky.Deadline)
	for _, policy := range policies {
		longest = max(longest, policy.Deadline)
	}
	return longest
}

// shutdown waits for the accepted work, then closes everything.
func (s *service) shutdown(srv *http.Server, silent *silentConns) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	ended := s.drain.begin()
	s.log.Info("draining", "timeout", s.cfg.DrainTimeout)
	silent.closeOlder(time.Second) // a younger one may be a call of our own
	select {
	case <-ended:
	case <-ctx.Done():
	}
	drained := isClosed(ended) // select may have missed it

	// The work is done; its last answers may still be on their way out. What
	// then remains is answers that nobody reads.
	silent.closeOlder(0)
	ctx, cancel = context.WithTimeout(ctx, time.Second)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close() // its error is the listener's, which Shutdown closed
	}
	if !drained {
		return fmt.Errorf("%w after %v", ErrDrainTimeout, s.cfg.DrainTimeout)
	}
	s.log.Info("drained")
	return nil
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// silentConns are the connections in http.StateNew: they have not sent a whole
// request header yet. Server.Shutdown waits for each, for up to 5 s.
type silentConns struct {
	mu    sync.Mutex
	since map[net.Conn]time.Time // guarded by mu
}

// track is an http.Server's ConnState.
func (s *silentConns) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != http.StateNew {
		delete(s.since, c)
		return
	}
	if s.since == nil {
		s.since = map[net.Conn]time.Time{}
	}
	s.since[c] = time.Now()
}

func (s *silentConns) closeOlder(age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, since := range s.since {
		if time.Since(since) >= age {
			_ = c.Close() // no request is lost, as none was sent
		}
	}
}
