package storefront

import (
	"errors"
	"net/http"

	"example.com/storefront/internal/dependency"
)

var errUnknownSKU = errors.New("unknown sku; try mug, tee or cap")

type stockAnswer struct {
	SKU   string `json:"sku"`
	Stock *int   `json:"stock"` // null: nobody knows
	Note  string `json:"note,omitempty"`
}

// stock says how much there is of a SKU. A shop can do without for a while: when
// inventory is gone, whatever the reason, it says so and goes on.
func (s *service) stock(w http.ResponseWriter, r *http.Request, c *call) error {
	sku := r.PathValue("sku")
	if len(sku) > maxName {
		return errUnknownSKU
	}
	answer := stockAnswer{SKU: sku}
	_, err := c.doPath("/upstream/inventory/stock/"+sku, dependency.Request{
		Decode: func(body []byte) error {
			return decode(body, &answer.Stock, func() bool { return answer.Stock != nil })
		},
	})
	switch {
	case err == nil:
	case answered(err, http.StatusNotFound):
		return errUnknownSKU
	case r.Context().Err() != nil, errors.Is(err, errNoAddress):
		return err
	default:
		answer.Stock, answer.Note = nil, "check availability"
		c.fallback("default")
	}
	return encode(w, answer)
}
