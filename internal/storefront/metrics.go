package storefront

import (
	"time"

	"example.com/storefront/internal/breaker"
)

// registerMetrics adds what is read when somebody looks, and makes the series visible
// before anything has happened: to see a counter rise from 0, Prometheus must have
// seen the 0. (But for http_requests_total: which codes come, nobody knows.)
func (s *service) registerMetrics(routes []string) {
	for name, client := range s.dependencies {
		s.metrics.Gauge("circuit_breaker_state", "0 closed, 0.5 half-open or probe due, 1 open.", map[string]string{"name": name}, func() float64 {
			switch b := client.Snapshot().Breaker; {
			case b.State == breaker.Closed:
				return 0
			case b.State == breaker.HalfOpen, b.ProbeDue:
				return 0.5
			default:
				return 1
			}
		})
		s.metrics.Gauge("bulkhead_in_use", "Permits taken.", map[string]string{"dependency": name}, func() float64 {
			return float64(client.Snapshot().Bulkhead.InUse)
		})
		for _, change := range [][2]breaker.State{
			{breaker.Closed, breaker.Open}, {breaker.Open, breaker.HalfOpen}, {breaker.HalfOpen, breaker.Open}, {breaker.HalfOpen, breaker.Closed},
			{breaker.Open, breaker.Closed}, // by a reset, as half_open to closed may be
		} {
			s.metrics.Transitions.WithLabelValues(name, string(change[0]), string(change[1]))
		}
	}
	s.metrics.Gauge("ratelimit_keys", "Keys that have a bucket of their own.", nil, func() float64 {
		return float64(s.limiter.Snapshot(time.Now()).Keys)
	})
	s.metrics.Gauge("ratelimit_degraded", "1 while Redis is not asked, though it should be.", nil, func() float64 {
		if s.redis.Degraded() {
			return 1
		}
		return 0
	})
	for _, route := range routes {
		s.metrics.Route(route)
	}
}
