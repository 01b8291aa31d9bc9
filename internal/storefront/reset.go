package storefront

import (
	"net/http"
	"time"
)

// reset is a clean slate: all is as after a start, but for what is under way, which goes
// on, keeps its permits and may leave its copy or its charge, for the buckets in Redis,
// which are not this instance's alone, and for the metrics: a counter that falls would look
// like a restart.
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
	s.senders.Reset()
	s.timeline.Reset()
	s.events.Forget("reset", resetEvent{time.Now()})
	s.log.Info("reset")
	return write(w, textType, "reset")
}

// resetEvent says that nothing of what was told before counts any more.
type resetEvent struct {
	At time.Time `json:"at"`
}
