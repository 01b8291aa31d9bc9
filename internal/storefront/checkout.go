package storefront

import (
	"bytes"
	"errors"
	"net/http"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
)

// checkout pays: it calls /flaky through every layer and passes on its JSON.
func (s *service) checkout(w http.ResponseWriter, _ *http.Request, c *call) error {
	url := s.cfg.FlakyURL
	if url == "" {
		var err error
		if url, err = ownURL(c.ctx, "/flaky"); err != nil {
			return err
		}
	}
	body, err := c.do(url, dependency.Request{})
	var open *breaker.OpenError
	switch {
	case err == nil:
		return write(w, jsonType, string(bytes.TrimSpace(body)))
	case errors.As(err, &open):
		return retryIn(min(open.RetryAfter(), maxRetryAfter), err)
	default:
		return explain("payment failed", err)
	}
}
