package storefront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/simulator"
)

// way is one of several ways that a benchmark takes in turn, so that all meet the
// same machine.
type way struct {
	name string
	call func() error
}

// inTurn takes each way for a batch of calls, again and again. It reports the CPU
// time of a call, on both sides of every socket, and its ratio to that of the first
// way in the same round: both as medians over the rounds.
func inTurn(b *testing.B, ways ...way) {
	const batch = 50 // as the clock of CPU time is a coarse one
	took, ratios := make([][]float64, len(ways)), make([][]float64, len(ways))
	for b.Loop() {
		first := 0.0
		for i, way := range ways {
			start := cpuTime(b)
			for range batch {
				if err := way.call(); err != nil {
					b.Fatalf("%s: %v", way.name, err)
				}
			}
			each := float64((cpuTime(b) - start).Nanoseconds()) / batch
			if i == 0 {
				first = each
			}
			took[i] = append(took[i], each)
			ratios[i] = append(ratios[i], each/first)
		}
	}
	median := func(numbers []float64) float64 {
		slices.Sort(numbers)
		return numbers[len(numbers)/2]
	}
	b.ReportMetric(0, "ns/op") // of all together: says nothing
	for i, way := range ways {
		b.ReportMetric(median(took[i]), way.name+"-cpu-ns")
		if i > 0 {
			b.ReportMetric(median(ratios[i]), way.name+"/"+ways[0].name)
		}
	}
}

// cpuTime is what this process has used so far, on all processors.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

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
	inTurn(b,
		way{"bare", fetch(dep.URL)},
		way{"stack", func() error {
			_, err := s.dependencies[flaky].Do(context.Background(), dependency.Request{URL: dep.URL})
			return err
		}},
		way{"checkout", fetch(server.URL + "/checkout")},
	)
}

// BenchmarkRefusal has the service answer /checkout and refuse in three ways. It is
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

	asking := func(name string, service func(path string) int, path string, want int) way {
		return way{name, func() error {
			if got := service(path); got != want {
				return fmt.Errorf("%d, want %d", got, want)
			}
			return nil
		}}
	}
	inTurn(b,
		asking("served", served, "/checkout", 200),
		asking("open", open, "/checkout", 503),
		asking("full", full, "/checkout", 503),
		asking("shed", full, "/slow", 503),
	)
}
