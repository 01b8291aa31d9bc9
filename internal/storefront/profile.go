package storefront

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"example.com/storefront/internal/dependency"
)

var errUnknownProfile = errors.New("unknown id; try ada, grace or linus")

// profile passes on a profile. An old one is better than none: when profiles is
// gone, whatever the reason, it answers the last good copy, marked as such.
func (s *service) profile(w http.ResponseWriter, r *http.Request, c *call) error {
	id := r.PathValue("id")
	if len(id) > maxName {
		return errUnknownProfile
	}
	body, err := c.doPath("/upstream/profiles/"+id, dependency.Request{
		Decode: func(body []byte) error {
			var p struct{ ID, Name string }
			return decode(body, &p, func() bool { return p.ID == id && p.Name != "" })
		},
	})
	now := time.Now()
	switch {
	case err == nil:
		body = bytes.TrimSpace(body)
		s.copies.put(id, body, now)
		return write(w, jsonType, string(body))
	case answered(err, http.StatusNotFound):
		s.copies.remove(id) // it is gone, and must not come back as a copy
		return errUnknownProfile
	case r.Context().Err() != nil:
		return err
	}
	if body, age, ok := s.copies.get(id, now); ok {
		c.fallback("cached")
		w.Header().Set("Age", strconv.Itoa(int(age.Seconds()))) // RFC 9111, §5.1
		return write(w, jsonType, string(body))
	}
	return explain("profile unavailable", err)
}
