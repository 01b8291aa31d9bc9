package storefront_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/retry"
	"example.com/storefront/internal/storefront"
)

// The service over real sockets, as a test of your own service can be: take the
// handler whole, make the waits short, and never depend on how long a thing
// takes.

// serve starts the service for the length of a test and returns its URL.
func serve(t *testing.T, cfg storefront.Config) string {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	h, err := storefront.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// get returns the status and the body.
func get(ctx context.Context, t *testing.T, url, apiKey string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if apiKey != "" {
		req.Header.Set("X-API-Key", apiKey)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error() // the context has ended
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestFlakyFailsTwoCallsOfThree(t *testing.T) {
	url := serve(t, storefront.Config{})
	for n, want := range []int{503, 503, 200, 503, 503, 200} {
		if status, _ := get(t.Context(), t, url+"/flaky", ""); status != want {
			t.Errorf("call %d: %d, want %d", n+1, status, want)
		}
	}
}

func TestCheckoutSucceedsAllTheSame(t *testing.T) {
	quick := dependency.Policy{Retry: retry.Config{Base: time.Millisecond}, Timeout: time.Hour, Deadline: time.Hour}
	url := serve(t, storefront.Config{Flaky: quick})
	for _, want := range []string{`{"call":3}`, `{"call":6}`} {
		if status, body := get(t.Context(), t, url+"/checkout", ""); status != 200 || body != want {
			t.Errorf("got %d %s, want 200 %s", status, body, want)
		}
	}
}

func TestLimitedRefusesTheFourth(t *testing.T) {
	url := serve(t, storefront.Config{LimitRate: 0.001}) // no refill within any test run
	for n, want := range []int{200, 200, 200, 429} {
		if status, _ := get(t.Context(), t, url+"/limited", "k1"); status != want {
			t.Errorf("request %d: %d, want %d", n+1, status, want)
		}
	}
	if status, _ := get(t.Context(), t, url+"/limited", "k2"); status != 200 {
		t.Errorf("another key: %d, want 200", status)
	}
}

func TestSlowAnswers(t *testing.T) {
	url := serve(t, storefront.Config{SlowWork: time.Millisecond})
	if status, body := get(t.Context(), t, url+"/slow", ""); status != 200 || body != "done" {
		t.Errorf("got %d %s, want 200 done", status, body)
	}
}

// With work that outlasts any test, the first answer of three can only be the
// refusal, however fast or slow the machine is.
func TestSlowRefusesOneOfThree(t *testing.T) {
	url := serve(t, storefront.Config{SlowWork: time.Hour})
	ctx, hangUp := context.WithCancel(t.Context())
	answers := make(chan int, 3)
	for range 3 {
		go func() {
			status, _ := get(ctx, t, url+"/slow", "")
			answers <- status
		}()
	}
	if status := <-answers; status != 503 {
		t.Errorf("first answer %d, want 503", status)
	}
	hangUp()
	for range 2 {
		if status := <-answers; status != 0 {
			t.Errorf("got %d after hanging up, want none", status)
		}
	}
}
