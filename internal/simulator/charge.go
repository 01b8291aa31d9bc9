package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"

	"example.com/storefront/internal/ascii"
)

// Charge is what a payment service is asked to do.
type Charge struct {
	Amount int    `json:"amount"` // minor units, 1 to 99,999,999
	Token  string `json:"token"`  // stands for a card; 1 to 255 visible ASCII characters
}

// ParseCharge reads a JSON object with the fields of Charge, all of them and no
// others, each once. The error names the field that is wrong.
//
// It is stricter than encoding/json, to which "AMOUNT" is amount and the last
// of two amounts wins: two services that read a charge must read the same.
func ParseCharge(body []byte) (Charge, error) {
	var c Charge
	var valid json.RawMessage
	if err := json.Unmarshal(body, &valid); err != nil {
		return c, fmt.Errorf("%w: %w", errNoCharge, err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, _ := dec.Token(); open != json.Delim('{') {
		return c, errNoCharge
	}
	given := map[string]bool{}
	for dec.More() {
		name, _ := dec.Token() // a string, as the body is valid
		field := name.(string)
		if given[field] {
			return c, fmt.Errorf("%s: given twice", field)
		}
		given[field] = true
		var err error
		switch field {
		case "amount":
			err = dec.Decode(&c.Amount)
		case "token":
			err = dec.Decode(&c.Token)
		default:
			return c, fmt.Errorf("%s: unknown field; try amount or token", quoted(field))
		}
		if err != nil { // the wrong type
			return c, errors.New(rules[field])
		}
	}
	switch {
	case c.Amount < 1 || c.Amount > 99_999_999:
		return c, errors.New(rules["amount"])
	case !ascii.Visible(c.Token, 255):
		return c, errors.New(rules["token"])
	}
	return c, nil
}

var errNoCharge = errors.New(`the body: must be an object like {"amount":1250,"token":"tok_visa"}`)

var rules = map[string]string{
	"amount": "amount: must be a whole number from 1 to 99999999",
	"token":  "token: must be 1 to 255 visible ASCII characters",
}

// ParseIdempotencyKey reads the Idempotency-Key of a request, 1 to 255 visible
// ASCII characters, quoted as draft-ietf-httpapi-idempotency-key-header has it or
// bare: the same key. It is empty if none was sent.
func ParseIdempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", errors.New("Idempotency-Key: sent more than once")
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem(values)
		text, ok := item.Value.(string)
		if err != nil || !ok || len(item.Params.Names()) > 0 {
			return "", errors.New("Idempotency-Key: begins with a quote, but is no quoted string")
		}
		key = text
	}
	if !ascii.Visible(key, 255) {
		return "", errors.New("Idempotency-Key: must be 1 to 255 visible ASCII characters")
	}
	return key, nil
}

// quoted is a name as it can stand in an error: one line, and not all of a long one.
func quoted(name string) string {
	const most = 40
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
