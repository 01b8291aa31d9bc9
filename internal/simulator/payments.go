package simulator

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// maxCharges bounds the ledger, and the idempotency records: the oldest goes. A
// repetition that comes later than this many other keys is a new charge.
const maxCharges = 10_000

// Payments charges cards. A repetition with the same Idempotency-Key, also one at
// the same time, gets the first charge again; with another body it gets 422.
type Payments struct {
	*Dependency

	mu      sync.Mutex
	made    int               // guarded by mu; charges since the start
	ledger  []entry           // guarded by mu; the latest, oldest first
	records map[string]record // guarded by mu; by key
	keys    []string          // guarded by mu; of records, oldest first
}

// entry of the ledger: what was really charged. No token and no key stands in it.
type entry struct {
	ChargeID string `json:"charge_id"`
	Amount   int    `json:"amount"`
}

// record is what was done under a key.
type record struct {
	charge Charge
	entry  entry
}

// NewPayments returns Payments that have charged nothing yet.
func NewPayments() *Payments {
	p := &Payments{}
	p.Dependency = newDependency(healthy, p.charge)
	p.forget = p.clear
	p.clear()
	return p
}

func (p *Payments) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made, p.ledger, p.records, p.keys = 0, []entry{}, map[string]record{}, nil
}

// ServeLedger answers what was really charged, as a JSON array, oldest first. It is
// no call of the dependency: no fault applies.
func (p *Payments) ServeLedger(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	ledger := p.ledger
	p.mu.Unlock()
	body, err := json.Marshal(ledger)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	writeJSON(w, body)
}

func (p *Payments) charge(w http.ResponseWriter, r *http.Request, _ int) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // no whole request came
	}
	key, err := ParseIdempotencyKey(r.Header)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	charge, err := ParseCharge(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	made, replayed, ok := p.once(key, charge)
	if !ok {
		refuse(w, http.StatusUnprocessableEntity, "Idempotency-Key: used before, with another body")
		return
	}
	writeJSON(w, []byte(fmt.Sprintf(`{"charge_id":%q,"amount":%d,"replayed":%t}`, made.ChargeID, made.Amount, replayed)))
}

// once makes a charge, unless it was made under this key before: then it is
// replayed. It is not ok if that was another charge.
func (p *Payments) once(key string, c Charge) (made entry, replayed, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, known := p.records[key]; known {
		return before.entry, true, before.charge == c
	}
	p.made++
	made = entry{ChargeID: fmt.Sprint("ch_", p.made), Amount: c.Amount}
	if len(p.ledger) == maxCharges {
		p.ledger = p.ledger[1:]
	}
	p.ledger = append(p.ledger, made)
	if key == "" {
		return made, false, true
	}
	if len(p.keys) == maxCharges {
		delete(p.records, p.keys[0])
		p.keys = p.keys[1:]
	}
	p.keys = append(p.keys, key)
	p.records[key] = record{c, made}
	return made, false, true
}
