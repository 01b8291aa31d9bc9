package storefront

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// JSON, but not what was asked for.
func TestAnswersOfTheWrongShapeAreFailures(t *testing.T) {
	for _, tt := range []struct {
		name, upstream string
		bodies         []string
		call           func(*world) answer
		want           string
	}{
		{inventory, "/upstream/inventory/stock/mug",
			[]string{`null`, `"12"`, `12.5`, `{"stock":12}`, `[12]`, `1e400`},
			func(w *world) answer { return w.get("/stock/mug") }, unknownStock},
		{profiles, "/upstream/profiles/ada",
			[]string{`null`, `{}`, `{"id":"ada"}`, `{"name":"Ada Lovelace"}`, `{"id":"grace","name":"Grace Hopper"}`, `{"id":7,"name":"x"}`, `[]`},
			func(w *world) answer { return w.get("/profile/ada") }, "502 profile unavailable: the response is not what was asked for"},
		{payments, "/upstream/payments/charge",
			[]string{`null`, `{}`, `{"charge_id":"","amount":1250,"replayed":false}`, `{"charge_id":"ch_1","amount":1,"replayed":false}`,
				`{"charge_id":"ch_1","amount":1250}`, `{"charge_id":1,"amount":1250,"replayed":false}`},
			func(w *world) answer { return w.post("/charge", mug) }, "502 payment outcome unknown"},
	} {
		for _, body := range tt.bodies {
			inBubble(t, Config{}, func(w *world) {
				w.intercept(tt.upstream, says(body))
				if got := tt.call(w); got.String() != tt.want {
					w.Errorf("%s answers %s: got %q, want %q", tt.name, body, got, tt.want)
				}
				if got := w.snapshot(tt.name).Breaker.Failures; got != 1 {
					w.Errorf("%s answers %s: %d failures, want 1", tt.name, body, got)
				}
			})
		}
	}
}

// Nobody waits for a fallback either, and a hang-up says nothing about anybody.
func TestHangUpsAreA499OnEveryRoute(t *testing.T) {
	for _, tt := range []struct{ name, method, path, route string }{
		{flaky, "GET", "/checkout", "/checkout"},
		{inventory, "GET", "/stock/mug", "/stock/{sku}"},
		{payments, "POST", "/charge", "/charge"},
		{profiles, "GET", "/profile/ada", "/profile/{id}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				w.want(w.get("/profile/ada"), ada) // there is a copy to fall back to
				w.fault(tt.name, simulator.Fault{Script: "H"})
				ctx, cancel := context.WithTimeout(w.Context(), 50*time.Millisecond)
				defer cancel()
				rec := httptest.NewRecorder() // as a client whose answer nobody reads
				r := httptest.NewRequestWithContext(withLocalAddr(ctx, w.network.Addr("127.0.0.1:3000")), tt.method, tt.path, strings.NewReader(mug))
				ctx, hangUp := context.WithCancel(r.Context())
				time.AfterFunc(20*time.Millisecond, hangUp)
				func() {
					defer func() {
						if p := recover(); p != http.ErrAbortHandler {
							w.Errorf("recovered %v, want an aborted answer", p)
						}
					}()
					w.service.ServeHTTP(rec, r.WithContext(ctx))
				}()
				synctest.Wait()
				if rec.Body.Len() > 0 || rec.Header().Get("Storefront-Fallback") != "" {
					w.Errorf("answered %q %v", rec.Body, rec.Header())
				}
				if want := "route=" + tt.route + " code=499"; !strings.Contains(w.log.String(), want) {
					w.Errorf("the log lacks %q:\n%s", want, w.log.String())
				}
				if got := w.snapshot(tt.name); got.Bulkhead.InUse != 0 || got.Breaker.Failures != 0 {
					w.Errorf("%+v, want no permit in use and no failure", got)
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

func TestLongNamesAreUnknownWithoutACall(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		for n, calls := range map[int]uint64{64: 1, 65: 0, 12_000: 0} {
			before := w.snapshot(inventory).Retry.Calls + w.snapshot(profiles).Retry.Calls
			w.wantFallback(w.get("/stock/"+strings.Repeat("!", n)), "404 unknown sku; try mug, tee or cap", "")
			w.want(w.get("/profile/"+strings.Repeat("!", n)), "404 unknown id; try ada, grace or linus")
			if got := w.snapshot(inventory).Retry.Calls + w.snapshot(profiles).Retry.Calls - before; got != 2*calls {
				w.Errorf("%d bytes: %d calls, want %d", n, got, 2*calls)
			}
		}
	})
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

// The bulkheads at work: a dependency that hangs takes its own permits and
// nothing else.
func TestInventoryHangsAndCheckoutLives(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 100
		w.fault(flaky, simulator.Fault{Script: "S"})
		w.fault(inventory, simulator.Fault{Script: "H"})
		var stuck []<-chan answer
		for range 20 {
			stuck = append(stuck, w.begin(w.Context(), "/stock/mug"))
		}
		if got := w.snapshot(inventory).Bulkhead.InUse; got != 20 {
			w.Fatalf("%d permits in use, want 20", got)
		}
		w.wantFallback(w.get("/stock/mug"), unknownStock, "default")
		var workers sync.WaitGroup
		for range 20 {
			workers.Go(func() {
				for range 10 {
					if got := w.get("/checkout"); got.status != 200 {
						w.Errorf("checkout: %v", got)
					}
				}
			})
		}
		workers.Wait()
		if took := time.Since(w.start); took != 0 {
			w.Errorf("took %v, want no time at all", took)
		}
		if got := w.snapshot(inventory).Bulkhead; got.InUse != 20 || got.Rejected != 1 {
			w.Errorf("%+v, want 20 in use and 1 rejected", got)
		}
		for _, a := range stuck {
			w.wantFallback(<-a, unknownStock, "default")
		}
		synctest.Wait()
		if got := w.snapshot(inventory).Bulkhead.InUse; got != 0 {
			w.Errorf("%d permits in use at the end, want 0", got)
		}
	})
}
