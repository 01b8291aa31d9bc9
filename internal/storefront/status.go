package storefront

import (
	"math"
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
	Senders      shed.Snapshot                 `json:"senders"`
	Draining     bool                          `json:"draining"`
	Controls     bool                          `json:"controls"`         // whether who asks may use them
	Buckets      []bucketSnapshot              `json:"buckets,omitzero"` // nil: not for who asks
}

type dependencySnapshot struct {
	dependency.Snapshot
	Faults simulator.Setting `json:"faults"`
}

type limiterSnapshot struct {
	Backend  string `json:"backend"`  // where the buckets are: memory or redis
	Degraded bool   `json:"degraded"` // whether they should be in Redis, and are not
	ratelimit.Snapshot
}

// bucketSnapshot is the bucket of a key that was used of late.
type bucketSnapshot struct {
	Key    string  `json:"key"`    // its first four characters: it may be a secret
	Tokens float64 `json:"tokens"` // rounded down to hundredths
}

// status answers every number that it takes to understand what one sees.
func (s *service) status(w http.ResponseWriter, r *http.Request) error {
	return encode(w, s.snapshot(r))
}

// snapshot looks, on behalf of r, and changes nothing.
func (s *service) snapshot(r *http.Request) snapshot {
	now := time.Now()
	all := snapshot{
		Dependencies: map[string]dependencySnapshot{},
		Limiter:      limiterSnapshot{Backend: "memory", Degraded: s.redis.Degraded(), Snapshot: s.limiter.Snapshot(now)},
		Slow:         s.shedder.Snapshot(),
		InFlight:     s.inFlight.Snapshot(),
		Streams:      s.streams.Snapshot(),
		Senders:      s.senders.Snapshot(),
		Draining:     s.drain.begun(),
		Controls:     s.mayControl(r) == nil,
	}
	for name, client := range s.dependencies {
		all.Dependencies[name] = dependencySnapshot{client.Snapshot(), s.simulated[name].Setting()}
	}
	if s.redis != nil {
		all.Limiter.Backend = "redis"
	}
	if s.callers != nil {
		callers := s.callers.Snapshot(now)
		all.Callers = &callers
	}
	if all.Controls {
		all.Buckets = []bucketSnapshot{}
		for _, b := range s.limiter.Recent(now) {
			all.Buckets = append(all.Buckets, bucketSnapshot{b.Key[:min(4, len(b.Key))], math.Floor(100*b.Tokens) / 100})
		}
	}
	return all
}
