package storefront

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/simulator"
)

const (
	mug    = `{"amount":1250,"token":"tok_visa"}`
	ledger = "/upstream/payments/charges"
)

func TestChargesAndReplays(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		const again = "Idempotency-Key: order-1"
		for i, row := range []struct{ body, key, want string }{
			{mug, again, `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`},
			{mug, again, `200 {"charge_id":"ch_1","amount":1250,"replayed":true}`},
			{mug, `Idempotency-Key: "order-1"`, `200 {"charge_id":"ch_1","amount":1250,"replayed":true}`},
			{` {"token":"tok_visa", "amount":1250}` + "\n", again, `200 {"charge_id":"ch_1","amount":1250,"replayed":true}`},
			{`{"amount":1251,"token":"tok_visa"}`, again, "422 Idempotency-Key: used before, with another body"},
			{`{"amount":1250,"token":"tok_mc"}`, again, "422 Idempotency-Key: used before, with another body"},
			{mug, "Idempotency-Key: order-2", `200 {"charge_id":"ch_2","amount":1250,"replayed":false}`},
			{mug, "X-No-Key: 1", `200 {"charge_id":"ch_3","amount":1250,"replayed":false}`},
			{mug, "X-No-Key: 1", `200 {"charge_id":"ch_4","amount":1250,"replayed":false}`},
		} {
			got := w.post("/charge", row.body, row.key)
			if got.String() != row.want {
				w.Errorf("row %d: got %q, want %q", i, got, row.want)
			}
			if got.header.Get("Cache-Control") != "no-store" {
				w.Errorf("row %d: Cache-Control %q", i, got.header.Get("Cache-Control"))
			}
		}
		got := w.get(ledger)
		w.want(got, `200 [{"charge_id":"ch_1","amount":1250},{"charge_id":"ch_2","amount":1250},`+
			`{"charge_id":"ch_3","amount":1250},{"charge_id":"ch_4","amount":1250}]`)
		if got := w.snapshot(payments).Breaker; got.State != breaker.Closed || got.Failures != 0 {
			w.Errorf("%+v, want closed: a 422 is a healthy answer", got)
		}
	})
}

// A call can succeed twice, or be told as failed though it succeeded.
func TestLostReply(t *testing.T) {
	const one = `200 [{"charge_id":"ch_1","amount":1250}]`
	t.Run("with a key: one charge, and the caller gets it", func(t *testing.T) {
		inBubble(t, Config{}, func(w *world) {
			w.fault(payments, simulator.Fault{Script: "LS"})
			w.want(w.post("/charge", mug, "Idempotency-Key: k"), `200 {"charge_id":"ch_1","amount":1250,"replayed":true}`)
			w.want(w.get(ledger), one)
		})
	})
	t.Run("without a key: one charge, and nobody knows", func(t *testing.T) {
		inBubble(t, Config{}, func(w *world) {
			w.fault(payments, simulator.Fault{Script: "LS"})
			w.want(w.post("/charge", mug), "502 payment outcome unknown")
			w.want(w.get(ledger), one)
			if got := w.snapshot(payments).Retry.Attempts; got != 1 {
				w.Errorf("%d attempts, want 1", got)
			}
		})
	})
}

func TestWhatIsSaidOfAChargeThatFailed(t *testing.T) {
	const unknown = "502 payment outcome unknown"
	for _, tt := range []struct {
		name  string
		fault simulator.Fault
		key   bool
		want  string
		calls uint64 // attempts
	}{
		// A refusal is a refusal. Without a key no status is ever retried.
		{"502", simulator.Fault{Script: "F", Status: 502}, false, "502 payment failed: 502 Bad Gateway", 1},
		{"503", simulator.Fault{Script: "F", Status: 503}, false, "502 payment failed: 503 Service Unavailable", 1},
		{"504", simulator.Fault{Script: "F", Status: 504}, false, "502 payment failed: 504 Gateway Timeout", 1},
		{"429", simulator.Fault{Script: "F", Status: 429}, false, "502 payment failed: 429 Too Many Requests", 1},
		{"422 that is not about a key", simulator.Fault{Script: "F", Status: 422}, false, "502 payment failed: 422 Unprocessable Entity", 1},
		{"503 with a key", simulator.Fault{Script: "F", Status: 503}, true, "502 payment failed: 503 Service Unavailable", 4},
		{"402 with a key", simulator.Fault{Script: "F", Status: 402}, true, "502 payment failed: 402 Payment Required", 1},
		// No status: it may have been charged.
		{"hanging", simulator.Fault{Script: "H"}, false, unknown, 1},
		{"reset", simulator.Fault{Script: "R"}, false, unknown, 1},
		{"malformed", simulator.Fault{Script: "M"}, false, unknown, 1},
		{"hanging with a key", simulator.Fault{Script: "H"}, true, unknown, 4},
		// A later refusal takes nothing back.
		{"lost, then refused", simulator.Fault{Script: "LFFF"}, true, unknown, 4},
		{"refused, then lost", simulator.Fault{Script: "FFFL"}, true, unknown, 4},
		{"lost, then no more patience", simulator.Fault{Script: "LF", RetryAfter: "60"}, true, unknown, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Config{}, func(w *world) {
				w.fault(payments, tt.fault)
				var header []string
				if tt.key {
					header = []string{"Idempotency-Key: k"}
				}
				w.want(w.post("/charge", mug, header...), tt.want)
				if got := w.snapshot(payments).Retry.Attempts; got != tt.calls {
					w.Errorf("%d attempts, want %d", got, tt.calls)
				}
			})
		})
	}
}

// That a key was used before is certain, whatever came before: had this charge been
// made by the attempt that was lost, it would be replayed.
func TestReusedKeyIsTold(t *testing.T) {
	for _, script := range []string{"SLS", "SHS", "SRS", "SFS", "SS"} {
		inBubble(t, Config{}, func(w *world) {
			w.fault(payments, simulator.Fault{Script: script})
			w.want(w.post("/charge", mug, "Idempotency-Key: k"), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
			w.want(w.post("/charge", `{"amount":1,"token":"t"}`, "Idempotency-Key: k"), "422 Idempotency-Key: used before, with another body")
			w.want(w.get(ledger), `200 [{"charge_id":"ch_1","amount":1250}]`)
		})
	}
}

// Something else than an error's status says nothing either.
func TestRedirectedChargeIsUnknown(t *testing.T) {
	for status, want := range map[int]string{303: "502 payment outcome unknown", 400: "502 payment failed: 400 Bad Request"} {
		inBubble(t, Config{}, func(w *world) {
			w.intercept("/upstream/payments/charge", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) })
			w.want(w.post("/charge", mug), want)
		})
	}
}

func TestAKeyedChargeIsOneRequestAnAttempt(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.want(w.post("/charge", mug), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`) // leaves a connection to reuse
		var header http.Header
		calls := 0
		w.intercept("/upstream/payments/charge", func(_ http.ResponseWriter, r *http.Request) {
			calls++
			header = r.Header
			panic(http.ErrAbortHandler)
		})
		w.want(w.post("/charge", mug, `Idempotency-Key: a"b`), "502 payment outcome unknown")
		if got := w.snapshot(payments).Retry.Attempts - 1; calls != 4 || got != 4 {
			w.Errorf("%d requests for %d attempts, want 4 for 4", calls, got)
		}
		if header.Get("Content-Type") != "application/json" || header.Get("Idempotency-Key") != `"a\"b"` {
			w.Errorf("sent %v", header)
		}
	})
}

// What never went out cannot have been charged.
func TestChargeThatWasNotSentHasFailed(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.service.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			// As if served at a port where nobody listens.
			ctx := withLocalAddr(r.Context(), w.network.Addr("127.0.0.1:1"))
			w.service.calling(payments, w.service.charge)(rw, r.WithContext(ctx))
		})
		w.want(w.post("/charge", mug), "502 payment failed: dial tcp 127.0.0.1:1: connect: connection refused")
	})
}

func TestIdenticalChargesAtTheSameTimeAreOne(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(payments, simulator.Fault{Latency: 300 * time.Millisecond})
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				a := w.post("/charge", mug, "Idempotency-Key: k")
				mu.Lock()
				defer mu.Unlock()
				got[a.String()]++
			})
		}
		all.Wait()
		want := map[string]int{
			`200 {"charge_id":"ch_1","amount":1250,"replayed":false}`: 1,
			`200 {"charge_id":"ch_1","amount":1250,"replayed":true}`:  9,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			w.Errorf("%v, want %v", got, want)
		}
		w.want(w.get(ledger), `200 [{"charge_id":"ch_1","amount":1250}]`)
	})
}

func TestOpenPaymentsBreaker(t *testing.T) {
	inBubble(t, Config{}, func(w *world) {
		w.fault(payments, simulator.Fault{Script: "F"})
		for range 3 {
			w.post("/charge", mug)
		}
		got := w.post("/charge", mug)
		w.want(got, "503 payment gateway unavailable")
		if got := got.header.Get("Retry-After"); got != "60" {
			w.Errorf("Retry-After %q, want 60", got)
		}
		w.fault(payments, simulator.Fault{})
		time.Sleep(60 * time.Second)
		w.want(w.post("/charge", mug), "503 payment gateway unavailable")
		w.want(w.get(ledger), "200 []")
		time.Sleep(time.Nanosecond)
		w.want(w.post("/charge", mug), `200 {"charge_id":"ch_1","amount":1250,"replayed":false}`)
	})
}

// Each bad field has its row; storefront and simulator refuse alike, and nothing
// is charged.
func TestBadChargesAreRefusedByName(t *testing.T) {
	const (
		object = `the body: must be an object like {"amount":1250,"token":"tok_visa"}`
		amount = "amount: must be a whole number from 1 to 99999999"
		token  = "token: must be 1 to 255 visible ASCII characters"
		quotes = "Idempotency-Key: begins with a quote, but is no quoted string"
		key    = "Idempotency-Key: must be 1 to 255 visible ASCII characters"
	)
	with := func(amount, token string) string { return `{"amount":` + amount + `,"token":` + token + `}` }
	inBubble(t, Config{}, func(w *world) {
		for _, tt := range []struct {
			body, header, want string
		}{
			{"", "", object + ": unexpected end of JSON input"},
			{"null", "", object},
			{"[]", "", object},
			{`"mug"`, "", object},
			{"amount=1250", "", object + ": invalid character 'a' looking for beginning of value"},
			{`{`, "", object + ": unexpected end of JSON input"},
			{`{"amount":1250,`, "", object + ": unexpected end of JSON input"},
			{`{"amount":}`, "", object + ": invalid character '}' looking for beginning of value"},
			{`{"amount":1250 "token":"t"}`, "", object + `: invalid character '"' after object key:value pair`},
			{`{}`, "", amount},
			{with("0", `"t"`), "", amount},
			{with("-1", `"t"`), "", amount},
			{with("100000000", `"t"`), "", amount},
			{with("1e3", `"t"`), "", amount},
			{with("12.5", `"t"`), "", amount},
			{with(`"1250"`, `"t"`), "", amount},
			{with("null", `"t"`), "", amount},
			{with("true", `"t"`), "", amount},
			{with("99999999999999999999", `"t"`), "", amount},
			{with("{}", `"t"`), "", amount},
			{`{"amount":1250}`, "", token},
			{with("1", `""`), "", token},
			{with("1", `"a b"`), "", token},
			{with("1", `"ä"`), "", token},
			{with("1", `"t\u007f"`), "", token},
			{with("1", `7`), "", token},
			{with("1", `null`), "", token},
			{with("1", `"`+strings.Repeat("t", 256)+`"`), "", token},
			{`{"amount":1,"token":"t","currency":"EUR"}`, "", `"currency": unknown field; try amount or token`},
			{`{"Amount":1,"token":"t"}`, "", `"Amount": unknown field; try amount or token`},
			{`{"amount":1,"token":"t","` + strings.Repeat("x", 50) + `":1}`, "", `"` + strings.Repeat("x", 40) + `…": unknown field; try amount or token`},
			{`{"a\nb":1}`, "", `"a\nb": unknown field; try amount or token`},
			{`{"amount":1,"amount":2,"token":"t"}`, "", "amount: given twice"},
			{`{"token":"t","amount":1,"token":"t"}`, "", "token: given twice"},
			{`{"a` + strings.Repeat("ä", 30) + `":1}`, "", `"a` + strings.Repeat("ä", 19) + `…": unknown field; try amount or token`},
			{mug + "x", "", object + ": invalid character 'x' after top-level value"},
			{mug + mug, "", object + ": invalid character '{' after top-level value"},
			{mug, `Idempotency-Key: `, key},
			{mug, `Idempotency-Key: a b`, key},
			{mug, `Idempotency-Key: kä`, key},
			{mug, `Idempotency-Key: ` + strings.Repeat("k", 256), key},
			{mug, `Idempotency-Key: "` + strings.Repeat("k", 256) + `"`, key},
			{mug, `Idempotency-Key: ""`, key},
			{mug, `Idempotency-Key: "a b"`, key},
			{mug, `Idempotency-Key: "`, quotes},
			{mug, `Idempotency-Key: "k`, quotes},
			{mug, `Idempotency-Key: "k"x`, quotes},
			{mug, `Idempotency-Key: "k";x=1`, quotes},
			{mug, `Idempotency-Key: "k","l"`, quotes},
			{mug, `Idempotency-Key: "a\b"`, quotes},
		} {
			for _, path := range []string{"/charge", "/upstream/payments/charge"} {
				var header []string
				if tt.header != "" {
					header = []string{tt.header}
				}
				if got := w.post(path, tt.body, header...); got.String() != "400 "+tt.want {
					w.Errorf("%s %s %s: got %q, want 400 %s", path, tt.body, tt.header, got, tt.want)
				}
			}
		}
		w.want(w.post("/charge", mug, "Idempotency-Key: a", "Idempotency-Key: a"), "400 Idempotency-Key: sent more than once")
		w.want(w.post("/charge", mug+strings.Repeat(" ", 64<<10)), "413 the body is too large: at most 65536 bytes")
		w.want(w.get(ledger), "200 []")
		if got := w.snapshot(payments).Retry.Calls; got != 0 {
			w.Errorf("%d calls of payments, want none for what is refused", got)
		}
		// The neighbours in range.
		for i, ok := range []struct{ body, key string }{
			{with("1", `"t"`), "k"},
			{with("99999999", `"`+strings.Repeat("t", 255)+`"`), strings.Repeat("k", 255)},
			{with("2", `"!~"`), `"` + strings.Repeat("q", 255) + `"`},
			{with("3", `"t"`), `"a\"b\\c"`},
			{with("4", `"t"`), `a"b\c`},
			{with("5", `"t"`), "!~"},
		} {
			want := fmt.Sprintf(`200 {"charge_id":"ch_%d",`, min(i+1, 5))
			switch got := w.post("/charge", ok.body, "Idempotency-Key: "+ok.key); {
			case i == 4:
				w.want(got, "422 Idempotency-Key: used before, with another body") // the same key, quoted and bare
			case !strings.HasPrefix(got.String(), want):
				w.Errorf("%s with key %s: got %q, want %s", ok.body, ok.key, got, want)
			}
		}
	})
}
