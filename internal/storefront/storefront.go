// Package storefront is the HTTP service: its routes, their handlers, and the
// table from error to status.
package storefront

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"example.com/storefront/internal/breaker"
	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// service is what the handlers share.
type service struct {
	http.Handler
	cfg       Config
	log       *slog.Logger
	drain     drain
	simulated simulator.Flaky
	flaky     *dependency.Client
	limiter   *ratelimit.Limiter
	shedder   *shed.Shedder
}

// New returns the whole service as a handler, or an error that names what is
// wrong with cfg. It calls its own /flaky at the address on which a request
// came in, so it works wherever it is served: by http.Server, by
// httptest.NewServer, over an in-memory network. It needs no closing: idle
// connections to the dependency end by themselves, after 30 s.
func New(cfg Config) (http.Handler, error) {
	s, err := newService(cfg)
	if err != nil {
		return nil, err // not a handler that is a nil *service
	}
	return s, nil
}

func newService(cfg Config) (*service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &service{cfg: cfg, log: cfg.Log}
	cfg.Flaky.Breaker.OnTransition = func(t breaker.Transition) { s.logTransition("flaky", t) }
	cfg.Flaky.Retry.OnGiveUp = func(ctx context.Context, reason string, err error) { s.logGiveUp(ctx, "flaky", reason, err) }
	var err1, err2, err3 error
	s.flaky, err1 = dependency.New(dependency.Config{
		Policy:    cfg.Flaky,
		Dial:      dial,
		OnAttempt: func(ctx context.Context, a dependency.Attempt) { s.logAttempt(ctx, "flaky", a) },
	})
	s.limiter, err2 = ratelimit.New(ratelimit.Config{Burst: cfg.LimitBurst, Rate: cfg.LimitRate})
	s.shedder, err3 = shed.New(shed.Config{Permits: cfg.SlowPermits})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	s.Handler = s.routes()
	return s, nil
}

// routes has every route, and all that a request passes on its way to one.
func (s *service) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.logRequests, s.recoverPanics, s.readBody, middleware.GetHead)
	r.NotFound(s.handle(notFound))
	r.MethodNotAllowed(s.handle(methodNotAllowed))

	// Business: refused while draining.
	r.Group(func(r chi.Router) {
		r.Use(s.unlessDraining)
		r.Get("/checkout", s.handle(s.checkout))
		r.Get("/limited", s.handle(s.limited))
		r.Get("/slow", s.handle(s.slow))
	})

	// The dependency itself.
	r.Get("/flaky", s.simulated.ServeHTTP)

	// For those who run it.
	r.Get("/healthz", s.handle(healthz))
	r.Get("/readyz", s.handle(s.readyz))
	return r
}
