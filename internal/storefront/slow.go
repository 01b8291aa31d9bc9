package storefront

import (
	"errors"
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"

	"example.com/storefront/internal/shed"
)

// slow works for a while, with room for little at once.
func (s *service) slow(w http.ResponseWriter, r *http.Request) error {
	err := s.shedder.Do(r.Context(), urgency(r), func() error {
		s.tellDecision("slow", "allowed")
		done := time.NewTimer(s.cfg.SlowWork)
		defer done.Stop()
		select {
		case <-done.C:
			s.timeline.Count(time.Now(), answerServed)
			return write(w, textType, "done")
		case <-r.Context().Done():
			return r.Context().Err()
		}
	})
	s.recordShed(err, "/slow", "slow")
	return err
}

// recordShed counts and tells a request that was shed, by the name in metrics and
// the one in /status.
func (s *service) recordShed(err error, route, by string) {
	if errors.Is(err, shed.ErrBusy) {
		s.metrics.Shed[route].Inc()
		s.tellDecision(by, "rejected")
	}
}

// limitInFlight bounds all business requests together.
func (s *service) limitInFlight(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		err := s.inFlight.Do(r.Context(), shed.DefaultUrgency, func() error {
			next.ServeHTTP(w, r)
			return nil
		})
		s.recordShed(err, "global", "in_flight")
		return err
	})
}

// urgency is the u of the Priority header (RFC 9218), from 0 to 7, 0 the most
// urgent. What is malformed or out of range counts as absent.
func urgency(r *http.Request) int {
	values := r.Header.Values("Priority")
	if len(values) == 0 {
		return shed.DefaultUrgency
	}
	params, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return shed.DefaultUrgency
	}
	u, _ := params.Get("u")
	item, _ := u.(httpsfv.Item)
	if n, ok := item.Value.(int64); ok && n >= 0 && n <= 7 {
		return int(n)
	}
	return shed.DefaultUrgency
}
