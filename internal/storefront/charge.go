package storefront

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/simulator"
)

var (
	errGateway   = errors.New("payment gateway unavailable")
	errUnknown   = errors.New("payment outcome unknown")
	errKeyReused = errors.New("Idempotency-Key: used before, with another body")
)

// charge charges a card. With an Idempotency-Key a failed attempt is repeated, as
// payments recognises the repeat; without, it never is: it might charge twice.
func (s *service) charge(w http.ResponseWriter, r *http.Request, c *call) error {
	key, err := simulator.ParseIdempotencyKey(r.Header)
	if err != nil {
		return badRequest(err.Error())
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	charge, err := simulator.ParseCharge(body)
	if err != nil {
		return badRequest(err.Error())
	}
	body, err = json.Marshal(charge)
	if err != nil {
		return err
	}
	body, err = c.doPath("/upstream/payments/charge", dependency.Request{
		Method:         http.MethodPost,
		Body:           body,
		IdempotencyKey: key,
		Decode: func(body []byte) error {
			var made struct {
				ChargeID string `json:"charge_id"`
				Amount   int
				Replayed *bool
			}
			return decode(body, &made, func() bool {
				return made.ChargeID != "" && made.Amount == charge.Amount && made.Replayed != nil
			})
		},
	})
	var open *breaker.OpenError
	switch {
	case err == nil:
		return write(w, jsonType, string(bytes.TrimSpace(body)))
	case key != "" && answered(err, http.StatusUnprocessableEntity):
		// Whatever came before: had this been charged, it would be replayed.
		return errKeyReused
	case errors.Is(err, dependency.ErrOutcomeUnknown):
		return errUnknown
	case errors.As(err, &open):
		return retryIn(open.RetryAfter(), errGateway)
	default:
		return explain("payment failed", err)
	}
}
