package storefront

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// BenchmarkCheckout calls a dependency that always succeeds three ways, in turn,
// so that all three meet the same machine: bare with a tuned client, through the
// four layers, and as a whole /checkout, which is one more server on the way. It
// reports medians, and their ratios to the bare call.
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
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20, DisableCompression: true}}
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
	ways := []struct {
		name string
		call func() error
		took []time.Duration
	}{
		{name: "bare", call: fetch(dep.URL)},
		{name: "stack", call: func() error { _, err := s.flaky.Get(context.Background(), dep.URL); return err }},
		{name: "checkout", call: fetch(server.URL + "/checkout")},
	}
	for b.Loop() {
		for i := range ways {
			start := time.Now()
			if err := ways[i].call(); err != nil {
				b.Fatal(err)
			}
			ways[i].took = append(ways[i].took, time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op") // of the three together: says nothing
	var bare time.Duration
	for i, way := range ways {
		slices.Sort(way.took)
		median := way.took[len(way.took)/2]
		b.ReportMetric(float64(median.Nanoseconds()), way.name+"-ns")
		if i == 0 {
			bare = median
			continue
		}
		b.ReportMetric(float64(median)/float64(bare), way.name+"/bare")
	}
}
