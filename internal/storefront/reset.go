package storefront

import "net/http"

// reset is a clean slate: all that a client can notice is as after a start. What is
// under way goes on, and keeps its permits. Metrics go on as well: a counter that
// falls would look like a restart.
func (s *service) reset(w http.ResponseWriter, _ *http.Request) error {
	for _, d := range s.simulated {
		d.Reset()
	}
	for _, client := range s.dependencies {
		client.Reset()
	}
	s.copies.clear()
	s.limiter.Reset()
	if s.callers != nil {
		s.callers.Reset()
	}
	s.inFlight.Reset()
	s.shedder.Reset()
	s.streams.Reset()
	s.log.Info("reset")
	return write(w, textType, "reset")
}
