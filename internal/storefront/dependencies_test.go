package storefront

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/storefront/internal/simulator"
)

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
