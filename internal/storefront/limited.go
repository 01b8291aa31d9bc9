package storefront

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/storefront/internal/ascii"
	"example.com/storefront/internal/ratelimit"
)

// limited admits what the token bucket of the key does.
func (s *service) limited(w http.ResponseWriter, r *http.Request) error {
	key, err := apiKey(r)
	if err != nil {
		return err
	}
	if key == "" {
		key = "anonymous" // which a client may send as well
	}
	decision, err := s.limiter.allow(r, w, key)
	s.metrics.Decisions[decision.String()].Inc()
	s.tellDecision("limiter", decision.String())
	if err != nil {
		return err
	}
	s.timeline.Count(time.Now(), answerServed)
	return write(w, textType, "ok")
}

// limitCallers admits what the token bucket of the caller does: that of its key or,
// without one, of its address.
func (s *service) limitCallers(next http.Handler) http.Handler {
	if s.callers == nil {
		return next
	}
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		key, err := apiKey(r)
		if err != nil {
			return err
		}
		caller := key
		if key == "" {
			caller = "address " + remoteIP(r) // no key has a space
		}
		decision, err := s.callers.allow(r, w, caller)
		s.tellDecision("callers", decision.String())
		if err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// limit is a rate limit that tells its clients about itself
// (draft-ietf-httpapi-ratelimit-headers).
type limit struct {
	*ratelimit.Shared
	name      string             // quoted
	policy    string             // the RateLimit-Policy header
	fallbacks prometheus.Counter // decisions without the Redis
}

// openRedis opens the Redis in which the limits are shared, if there is one.
func (s *service) openRedis() (err error) {
	if s.cfg.Redis != "" {
		s.redis, err = ratelimit.OpenRedis(ratelimit.RedisConfig{URL: s.cfg.Redis, OnChange: s.logRedis})
	}
	return err
}

// newLimits makes the limits, which the Redis that is open shares.
func (s *service) newLimits() (err error) {
	cfg := ratelimit.Config{Burst: s.cfg.LimitBurst, Rate: s.cfg.LimitRate, MaxKeys: s.cfg.LimitMaxKeys}
	if s.limiter, err = s.newLimit("default", cfg); err == nil && s.cfg.CallerRate > 0 {
		cfg.Burst, cfg.Rate = s.cfg.CallerBurst, s.cfg.CallerRate
		s.callers, err = s.newLimit("caller", cfg)
	}
	return err
}

func (s *service) newLimit(name string, cfg ratelimit.Config) (*limit, error) {
	l, err := ratelimit.NewShared(s.redis, name, cfg)
	if err != nil {
		return nil, err
	}
	name = strconv.Quote(name)
	quota, window := l.Policy()
	return &limit{l, name, fmt.Sprintf("%s;q=%d;w=%d", name, quota, wholeSeconds(window)), s.metrics.Fallbacks}, nil
}

// allow takes a token, and tells the client how many are left.
func (l *limit) allow(r *http.Request, w http.ResponseWriter, key string) (ratelimit.Decision, error) {
	decision := l.Allow(r.Context(), key)
	if decision.Fallback {
		l.fallbacks.Inc()
	}
	// The names are as net/http spells them, or it would do so each time.
	w.Header().Add("Ratelimit-Policy", l.policy)
	w.Header().Add("Ratelimit", l.name+";r="+strconv.Itoa(decision.Left)+";t="+strconv.Itoa(wholeSeconds(decision.Next)))
	if !decision.Allowed {
		return decision, retryIn(decision.Next, ratelimit.ErrLimited)
	}
	return decision, nil
}

// apiKey is the whole X-API-Key, 1 to 128 visible ASCII characters, empty without
// one. No other header counts.
func apiKey(r *http.Request) (string, error) {
	values := r.Header["X-Api-Key"] // as net/http spells it
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", badRequest("X-API-Key: sent more than once")
	}
	if !ascii.Visible(values[0], 128) {
		return "", badRequest("X-API-Key: must be 1 to 128 visible ASCII characters")
	}
	return values[0], nil
}

// remoteIP is the address of the other end of the connection, not one that a
// header claims.
func remoteIP(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // a Unix socket, for one
	}
	return addr.Addr().Unmap().String()
}
