package storefront

import (
	"context"
	"log/slog"
	"net/url"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
)

// logTransition writes a line per change of state; to open is worth a warning.
func (s *service) logTransition(name string, t breaker.Transition) {
	level := slog.LevelInfo
	if t.To == breaker.Open {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "breaker transition", "dependency", name, "from", t.From, "to", t.To)
}

// logRedis writes a line when the rate limit can be shared no more, and when it is again.
func (s *service) logRedis(degraded bool, err error) {
	u, _ := url.Parse(s.cfg.Redis) // Validate has seen it; the rest may be a password
	if degraded {
		s.log.Warn("rate limit degraded", "redis", u.Host, "err", err)
	} else {
		s.log.Info("rate limit shared", "redis", u.Host)
	}
}

// logGiveUp writes why a failed call was not tried again, at DEBUG.
func (s *service) logGiveUp(ctx context.Context, name, reason string, err error) {
	s.log.DebugContext(ctx, "gave up", "dependency", name, "reason", reason, "err", err)
}

// logAttempt writes a line per attempt, at DEBUG.
func (s *service) logAttempt(ctx context.Context, name string, a dependency.Attempt) {
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return // before anything is allocated
	}
	attrs := []any{"dependency", name, "outcome", a.Outcome, "took", a.Took}
	if a.Err != nil {
		attrs = append(attrs, "err", a.Err)
	}
	s.log.DebugContext(ctx, "attempt", attrs...)
}
