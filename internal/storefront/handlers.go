package storefront

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/ratelimit"
)

// checkout pays: it calls /flaky through every layer and passes on its JSON.
func (s *service) checkout(w http.ResponseWriter, r *http.Request) error {
	url := s.cfg.FlakyURL
	if url == "" {
		var err error
		if url, err = ownURL(r.Context(), "/flaky"); err != nil {
			return err
		}
	}
	body, err := s.flaky.Get(r.Context(), url)
	var open *breaker.OpenError
	switch {
	case err == nil:
		return write(w, "application/json", string(bytes.TrimSpace(body)))
	case errors.As(err, &open):
		return retryIn(min(open.RetryAfter(), maxRetryAfter), err)
	case errors.Is(err, dependency.ErrFailed), errors.Is(err, dependency.ErrDeadline):
		return fmt.Errorf("payment failed: %w", err)
	default:
		return err
	}
}

// limited admits what the caller's token bucket does.
func (s *service) limited(w http.ResponseWriter, r *http.Request) error {
	key, err := apiKey(r)
	if err != nil {
		return err
	}
	decision := s.limiter.Allow(time.Now(), key)
	quota, window := s.limiter.Policy()
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, quota, wholeSeconds(window)))
	w.Header().Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, decision.Left, wholeSeconds(decision.Next)))
	if !decision.Allowed {
		return retryIn(decision.Next, ratelimit.ErrLimited)
	}
	return write(w, textType, "ok")
}

// slow works for a while, with room for little at once.
func (s *service) slow(w http.ResponseWriter, r *http.Request) error {
	return s.shedder.Do(func() error {
		done := time.NewTimer(s.cfg.SlowWork)
		defer done.Stop()
		select {
		case <-done.C:
			return write(w, textType, "done")
		case <-r.Context().Done():
			return r.Context().Err()
		}
	})
}

func healthz(w http.ResponseWriter, _ *http.Request) error {
	return write(w, textType, "ok")
}

func (s *service) readyz(w http.ResponseWriter, _ *http.Request) error {
	if s.drain.begun() {
		return errDraining
	}
	return write(w, textType, "ready")
}

// apiKey is the rate limit's key: the whole X-API-Key, 1 to 128 visible ASCII
// characters, or "anonymous" without one; a client may send that word as well. No
// other header counts.
func apiKey(r *http.Request) (string, error) {
	values := r.Header.Values("X-API-Key")
	if len(values) == 0 {
		return "anonymous", nil
	}
	key := values[0]
	if len(values) > 1 {
		return "", badRequest("X-API-Key: sent more than once")
	}
	if len(key) < 1 || len(key) > 128 {
		return "", badRequest("X-API-Key: must be 1 to 128 characters long")
	}
	for _, c := range []byte(key) {
		if c < '!' || c > '~' {
			return "", badRequest("X-API-Key: must be visible ASCII characters only")
		}
	}
	return key, nil
}

// write sends a 200. It returns nil, so a handler can end on it: nobody is left
// to tell when a client does not take its answer.
func write(w http.ResponseWriter, contentType, body string) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store") // each answer is one of a kind
	_, _ = io.WriteString(w, body)
	return nil
}
