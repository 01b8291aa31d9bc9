package storefront

import (
	"net/http"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// snapshot is the whole service at one moment.
type snapshot struct {
	Dependencies map[string]dependencySnapshot `json:"dependencies"`
	Limiter      limiterSnapshot               `json:"limiter"`
	Callers      *ratelimit.Snapshot           `json:"callers,omitempty"` // nil: off
	Slow         shed.Snapshot                 `json:"slow"`
	InFlight     shed.Snapshot                 `json:"in_flight"`
	Streams      shed.Snapshot                 `json:"streams"`
	Draining     bool                          `json:"draining"`
}

type dependencySnapshot struct {
	dependency.Snapshot
	Faults simulator.Setting `json:"faults"`
}

type limiterSnapshot struct {
	Backend  string `json:"backend"`  // memory, as the buckets are not shared
	Degraded bool   `json:"degraded"` // so never
	ratelimit.Snapshot
}

// status answers every number that it takes to understand what one sees.
func (s *service) status(w http.ResponseWriter, _ *http.Request) error {
	return encode(w, s.snapshot())
}

// snapshot looks, and changes nothing.
func (s *service) snapshot() snapshot {
	now := time.Now()
	all := snapshot{
		Dependencies: map[string]dependencySnapshot{},
		Limiter:      limiterSnapshot{Backend: "memory", Snapshot: s.limiter.Snapshot(now)},
		Slow:         s.shedder.Snapshot(),
		InFlight:     s.inFlight.Snapshot(),
		Streams:      s.streams.Snapshot(),
		Draining:     s.drain.begun(),
	}
	for name, client := range s.dependencies {
		all.Dependencies[name] = dependencySnapshot{client.Snapshot(), s.simulated[name].Setting()}
	}
	if s.callers != nil {
		callers := s.callers.Snapshot(now)
		all.Callers = &callers
	}
	return all
}
