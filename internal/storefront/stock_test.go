package storefront

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/simulator"
)

const unknownStock = `200 {"sku":"mug","stock":null,"note":"check availability"}`

func (w *world) wantFallback(got answer, body, fallback string) {
	w.Helper()
	w.want(got, body)
	if got := got.header.Get("Storefront-Fallback"); got != fallback {
		w.Errorf("Storefront-Fallback %q, want %q", got, fallback)
	}
}

func TestStockIsWhatInventorySays(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for path, want := range map[string]string{
			"/stock/mug":                        `200 {"sku":"mug","stock":12}`,
			"/stock/tee":                        `200 {"sku":"tee","stock":40}`,
			"/stock/cap":                        `200 {"sku":"cap","stock":0}`,
			"/stock/m%75g":                      `200 {"sku":"mug","stock":12}`,
			"/stock/MUG":                        "404 unknown sku; try mug, tee or cap",
			"/%73tock/mug":                      `200 {"sku":"mug","stock":12}`,
			"/stock/mug%2f":                     "404 unknown sku; try mug, tee or cap",
			"/stock/..%2fprofiles%2fada":        "404 unknown sku; try mug, tee or cap",
			"/stock%2fmug":                      "404 " + errNotFound.Error(),
			"/stock%2Fmug":                      "404 " + errNotFound.Error(),
			"/stock/m%0aug":                     "404 unknown sku; try mug, tee or cap",
			"/stock/%ff":                        "404 unknown sku; try mug, tee or cap",
			"/upstream/inventory/stock/m%75g":   "200 12",
			"/stock/..":                         "404 unknown sku; try mug, tee or cap",
			"/stock/mug%3fx":                    "404 unknown sku; try mug, tee or cap",
			"/stock/100%25":                     "404 unknown sku; try mug, tee or cap",
			"/upstream/inventory/stock/mug":     "200 12",
			"/upstream/inventory/stock/nothing": "404 unknown sku",
		} {
			w.wantFallback(w.get(path), want, "")
		}
		if got := w.get("/stock/mug").header.Get("Content-Type"); got != "application/json" {
			w.Errorf("Content-Type %q", got)
		}
	})
}

// A sku that nobody knows is no failure: 50 of them leave the breaker closed.
func TestUnknownSKUsAreHealthyAnswers(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for range 50 {
			w.want(w.get("/stock/nothing"), "404 unknown sku; try mug, tee or cap")
		}
		if got := w.snapshot(inventory).Breaker; got.State != breaker.Closed || got.Failures != 0 || got.Calls != 50 {
			w.Errorf("%+v, want closed with 50 calls and no failure", got)
		}
	})
}

// Whatever goes wrong, the shop page gets its answer.
func TestStockFallsBackWhenInventoryIsGone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault simulator.Fault
		took  time.Duration
	}{
		{"503", simulator.Fault{Script: "F"}, 0},
		{"500", simulator.Fault{Script: "F", Status: 500}, 0},
		{"429", simulator.Fault{Script: "F", Status: 429, RetryAfter: "60"}, 0},
		{"400", simulator.Fault{Script: "F", Status: 400}, 0},
		{"hanging", simulator.Fault{Script: "H"}, 300 * time.Millisecond},
		{"slow", simulator.Fault{Latency: time.Second}, 300 * time.Millisecond},
		{"reset", simulator.Fault{Script: "R"}, 0},
		{"malformed", simulator.Fault{Script: "M"}, 0},
		{"lost reply", simulator.Fault{Script: "L"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				w.fault(inventory, tt.fault)
				w.wantFallback(w.get("/stock/mug"), unknownStock, "default")
				if took := time.Since(w.start); took != tt.took {
					w.Errorf("took %v, want %v", took, tt.took)
				}
				if got := w.snapshot(inventory).Retry; got.Attempts != 1 {
					w.Errorf("%d attempts, want 1: it is never retried", got.Attempts)
				}
			})
		})
	}
}

// Middleware in front may end the context just after a good answer has come.
func TestGoodStockGoesOutThoughTheContextHasEnded(t *testing.T) {
	var end atomic.Value // of func(), which ends the context of the request
	log := slog.New(hook{quiet.Handler(), func() { end.Load().(func())() }})
	inBubble(t, Config{Log: log}, func(w *world) {
		served := w.service.Handler
		w.service.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stock/mug" {
				ctx, cancel := context.WithTimeout(r.Context(), time.Second)
				defer cancel()
				end.Store(func() { time.Sleep(time.Second) })
				r = r.WithContext(ctx)
			}
			served.ServeHTTP(rw, r)
		})
		w.want(w.get("/stock/mug"), `200 {"sku":"mug","stock":12}`)
	})
}

// hook calls a function for each attempt that is logged.
type hook struct {
	slog.Handler
	attempt func()
}

func (hook) Enabled(context.Context, slog.Level) bool { return true }

func (h hook) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "attempt" {
		h.attempt()
	}
	return nil
}

func TestHalfOfTwentyCallsOpenTheInventoryBreaker(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(inventory, simulator.Fault{Script: "SF"})
		for i := range 20 {
			if got := w.snapshot(inventory).Breaker; got.State != breaker.Closed {
				w.Fatalf("%v after %d calls", got.State, i)
			}
			w.get("/stock/mug")
		}
		opened := w.snapshot(inventory).Breaker
		if opened.State != breaker.Open || opened.RetryAfter < 4500*time.Millisecond || opened.RetryAfter > 5500*time.Millisecond {
			w.Errorf("%+v, want open for 4.5s to 5.5s", opened)
		}
		w.fault(inventory, simulator.Fault{})
		w.wantFallback(w.get("/stock/mug"), unknownStock, "default")
		time.Sleep(opened.RetryAfter)
		w.wantFallback(w.get("/stock/mug"), unknownStock, "default")
		time.Sleep(time.Nanosecond)
		for _, want := range []breaker.State{breaker.HalfOpen, breaker.HalfOpen, breaker.Closed} {
			w.wantFallback(w.get("/stock/mug"), `200 {"sku":"mug","stock":12}`, "")
			if got := w.snapshot(inventory).Breaker.State; got != want {
				w.Errorf("%v after a good probe, want %v", got, want)
			}
		}
	})
}
