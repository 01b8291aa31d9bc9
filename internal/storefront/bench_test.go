package storefront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/inturn"
	"example.com/storefront/internal/simulator"
)

// BenchmarkCheckout calls a dependency that always succeeds three ways: bare with
// a tuned client, through the four layers, and as a whole /checkout, which is one
// more server on the way.
func BenchmarkCheckout(b *testing.B) {
	dep := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"call":3}`)
	}))
	defer dep.Close()
	s, err := newService(Config{FlakyURL: dep.URL, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	tuned := http.DefaultTransport.(*http.Transport).Clone()
	tuned.MaxIdleConnsPerHost, tuned.DisableCompression = 20, true
	client := &http.Client{Transport: tuned}
	defer client.CloseIdleConnections()

	fetch := func(url string) func() error {
		return func() error {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			return err
		}
	}
	inturn.CPU(b,
		inturn.Way{Name: "bare", Call: fetch(dep.URL)},
		inturn.Way{Name: "stack", Call: func() error {
			_, err := s.dependencies[flaky].Do(context.Background(), dependency.Request{URL: dep.URL})
			return err
		}},
		inturn.Way{Name: "checkout", Call: fetch(server.URL + "/checkout")},
	)
}

// BenchmarkRefusal has the service answer /checkout and refuse in four ways. It is
// asked by a call of its handler, so that asking costs next to nothing. What is
// served goes to the service's own /flaky over a socket, and succeeds at once.
func BenchmarkRefusal(b *testing.B) {
	serve := func(cfg Config) (*service, func(path string) int) {
		cfg.Log = quiet
		s, err := newService(cfg)
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(s)
		b.Cleanup(server.Close)
		ctx := withLocalAddr(b.Context(), server.Listener.Addr())
		return s, func(path string) int {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			return rec.Code
		}
	}
	s, served := serve(Config{})
	if _, err := s.simulated[flaky].Set(simulator.Fault{Script: "S"}); err != nil {
		b.Fatal(err)
	}

	dead := Config{FlakyURL: "http://127.0.0.1:1"}
	dead.Flaky.Retry.Attempts, dead.Flaky.Breaker.Failures, dead.Flaky.Breaker.Cooldown = 1, 1, time.Hour
	_, open := serve(dead)
	open("/checkout")

	hanging := Config{SlowPermits: 1, SlowWork: time.Hour}
	hanging.Flaky.Bulkhead.Permits, hanging.Flaky.Timeout, hanging.Flaky.Deadline = 1, time.Hour, time.Hour
	s, full := serve(hanging)
	if _, err := s.simulated[flaky].Set(simulator.Fault{Script: "H"}); err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/checkout", "/slow"} {
		go func() {
			defer func() { _ = recover() }() // in the end it aborts its answer
			full(path)
		}()
	}
	for s.dependencies[flaky].Snapshot().Bulkhead.InUse == 0 || s.shedder.Snapshot().InUse == 0 {
		runtime.Gosched()
	}

	_, limited := serve(Config{CallerRate: 0.001, CallerBurst: 1})
	limited("/limited")

	asking := func(name string, service func(path string) int, path string, want int) inturn.Way {
		return inturn.Way{Name: name, Call: func() error {
			if got := service(path); got != want {
				return fmt.Errorf("%d, want %d", got, want)
			}
			return nil
		}}
	}
	inturn.CPU(b,
		asking("served", served, "/checkout", 200),
		asking("open", open, "/checkout", 503),
		asking("full", full, "/checkout", 503),
		asking("limited", limited, "/checkout", 429),
		asking("shed", full, "/slow", 503),
	)
}
