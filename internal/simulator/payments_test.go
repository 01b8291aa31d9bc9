package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"example.com/storefront/internal/ascii"
)

const mug = `{"amount":1250,"token":"tok_visa"}`

func ledger(p *Payments) string {
	rec := httptest.NewRecorder()
	p.ServeLedger(rec, httptest.NewRequest("GET", "/", nil))
	return rec.Body.String()
}

func wantLedger(t *testing.T, p *Payments, want string) {
	t.Helper()
	if got := ledger(p); got != want {
		t.Errorf("charged %s, want %s", got, want)
	}
}

func TestParallelChargesUnderOneKeyAreOne(t *testing.T) {
	p := NewPayments()
	var mu sync.Mutex
	got := map[string]int{}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			_, body := ask(p, "POST", mug, "Idempotency-Key: k")
			mu.Lock()
			defer mu.Unlock()
			got[body]++
		})
	}
	all.Wait()
	want := map[string]int{
		`{"charge_id":"ch_1","amount":1250,"replayed":false}`: 1,
		`{"charge_id":"ch_1","amount":1250,"replayed":true}`:  99,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	wantLedger(t, p, `[{"charge_id":"ch_1","amount":1250}]`)
}

func TestResetForgetsChargesAndKeys(t *testing.T) {
	p := NewPayments()
	for range 2 {
		if _, body := ask(p, "POST", mug, "Idempotency-Key: k"); body != `{"charge_id":"ch_1","amount":1250,"replayed":false}` {
			t.Errorf("got %s, want the first charge", body)
		}
		p.Reset()
		wantLedger(t, p, "[]")
	}
}

func TestLedgerAndRecordsAreBounded(t *testing.T) {
	p := NewPayments()
	for i := range maxCharges + 3 {
		p.once(fmt.Sprint("key-", i), Charge{Amount: i + 1, Token: "t"})
	}
	for range 2 {
		p.once("", Charge{Amount: 7, Token: "t"})
	}
	var entries []entry
	if err := json.Unmarshal([]byte(ledger(p)), &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != maxCharges || entries[0].ChargeID != "ch_6" || entries[maxCharges-1].ChargeID != fmt.Sprint("ch_", maxCharges+5) {
		t.Errorf("%d charges from %s to %s", len(entries), entries[0].ChargeID, entries[len(entries)-1].ChargeID)
	}
	if len(p.records) != maxCharges || len(p.keys) != maxCharges {
		t.Errorf("%d records under %d keys, want %d", len(p.records), len(p.keys), maxCharges)
	}
	if _, replayed, ok := p.once("key-3", Charge{Amount: 4, Token: "t"}); !replayed || !ok {
		t.Error("the oldest key that should still be known is not")
	}
	if _, replayed, _ := p.once("key-2", Charge{Amount: 3, Token: "t"}); replayed {
		t.Error("a key that should be forgotten is known")
	}
}

// Whatever was forgotten at a reset is not dropped once more later.
func TestBoundsStartAfreshAfterAReset(t *testing.T) {
	p := NewPayments()
	for i := range maxCharges {
		p.once(fmt.Sprint("key-", i), Charge{Amount: 1, Token: "t"})
	}
	p.Reset()
	p.once("key-1", Charge{Amount: 1, Token: "t"})
	p.once("new", Charge{Amount: 1, Token: "t"})
	if _, replayed, _ := p.once("key-1", Charge{Amount: 1, Token: "t"}); !replayed {
		t.Error("a key of after the reset is not known")
	}
}

func TestBrokenBodyChargesNothing(t *testing.T) {
	p := NewPayments()
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(mug), iotest.ErrReader(io.ErrUnexpectedEOF)))
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("recovered %v, want an aborted reply", got)
			}
		}()
		p.ServeHTTP(httptest.NewRecorder(), r)
	}()
	wantLedger(t, p, "[]")
}

func FuzzCharge(f *testing.F) {
	if _, err := ParseCharge([]byte(mug)); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{mug, "", "{}", `{"amount":1,"amount":2}`, `{"amount":1e3,"token":"t"}`, `{"a":{"b":[]}}`, mug + "x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := ParseCharge(body)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: an error of several lines: %v", body, err)
			}
			return
		}
		if c.Amount < 1 || c.Amount > 99_999_999 || !ascii.Visible(c.Token, 255) {
			t.Errorf("%q: accepted %+v", body, c)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseCharge(again); err != nil || back != c {
			t.Errorf("%q: %+v came back as %+v, %v", body, c, back, err)
		}
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"k", `"k"`, `"a\"b\\c"`, `"`, `""`, `"k";x`, "a b", "kä"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := ParseIdempotencyKey(http.Header{"Idempotency-Key": {value}})
		if err != nil {
			if ascii.Visible(value, 255) && value[0] != '"' {
				t.Errorf("%q: refused: %v", value, err)
			}
			return
		}
		if !ascii.Visible(key, 255) {
			t.Errorf("%q: accepted %q", value, key)
		}
		// As the storefront passes it on.
		if back, err := ParseIdempotencyKey(http.Header{"Idempotency-Key": {strconv.Quote(key)}}); err != nil || back != key {
			t.Errorf("%q: %q came back as %q, %v", value, key, back, err)
		}
	})
}
