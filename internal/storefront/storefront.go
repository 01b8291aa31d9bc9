// Package storefront is the HTTP service: its routes, their handlers, and the
// table from error to status.
package storefront

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/observe"
	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/shed"
	"example.com/storefront/internal/simulator"
)

// service is what the handlers share.
type service struct {
	http.Handler
	cfg      Config
	log      *slog.Logger
	metrics  *observe.Metrics
	events   observe.Events
	timeline observe.Timeline
	address  net.Addr // where it listens; nil if New's caller serves it
	drain    *drain

	// What it calls, and what acts that out, by the names in policies.
	dependencies map[string]*dependency.Client
	counted      map[string]*observe.Dependency
	simulated    map[string]*simulator.Dependency
	payments     *simulator.Payments // one of them
	copies       copies              // of profiles

	redis    *ratelimit.Redis // nil: none
	callers  *limit           // nil: off
	limiter  *limit           // of /limited
	inFlight *shed.Shedder    // of all business routes
	shedder  *shed.Shedder    // of /slow
	streams  *shed.Shedder    // of /events
	senders  *shed.Shedder    // of /send

	client *http.Client // of /send
}

// New returns the whole service as a handler, or an error that names what is
// wrong with cfg. It calls its own simulators at the address on which a request
// came in, so it works wherever it is served: by http.Server, by
// httptest.NewServer, over an in-memory network. It needs no closing: idle
// connections to the dependencies end by themselves, after 30 s, and /events when
// its reader leaves. But with cfg.Redis it is an io.Closer, which closes the
// connections to that.
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
	s := &service{cfg: cfg, log: cfg.Log, metrics: observe.NewMetrics(), drain: newDrain(), payments: simulator.NewPayments()}
	s.simulated = map[string]*simulator.Dependency{
		flaky:     simulator.Flaky(),
		inventory: simulator.Inventory(),
		payments:  s.payments.Dependency,
		profiles:  simulator.Profiles(),
	}
	s.dependencies, s.counted = map[string]*dependency.Client{}, map[string]*observe.Dependency{}
	for name, policy := range policies {
		if name == flaky {
			policy = cfg.Flaky
		}
		client, err := s.newClient(name, policy)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.dependencies[name] = client
	}

	var err error
	if s.inFlight, err = shed.New(shed.Config{Permits: cfg.MaxInFlight}); err != nil {
		return nil, err
	}
	if s.shedder, err = shed.New(shed.Config{
		Permits: cfg.SlowPermits, Policy: cfg.SlowPolicy, Queue: cfg.SlowQueue, MaxWait: cfg.SlowMaxWait,
	}); err != nil {
		return nil, err
	}
	if s.streams, err = shed.New(shed.Config{Permits: maxStreams}); err != nil {
		return nil, err
	}
	if s.senders, err = shed.New(shed.Config{Permits: maxSenders}); err != nil {
		return nil, err
	}
	if err = s.openRedis(); err != nil {
		return nil, err
	}
	if err = s.newLimits(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.client = newSendingClient()
	routes := s.routes()
	s.Handler = routes
	s.registerMetrics(patterns(routes))
	return s, nil
}

// Close closes the connections to Redis.
func (s *service) Close() error { return s.redis.Close() }

// routes has every route, and all that a request passes on its way to one.
func (s *service) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(s.observeRequests, s.refuseCrossOrigin, s.readBody, decodePath, middleware.GetHead)
	r.NotFound(s.handle(notFound))
	r.MethodNotAllowed(s.handle(methodNotAllowed))

	// Business: bounded, and refused while draining.
	r.Group(func(r chi.Router) {
		r.Use(s.unlessDraining, s.limitCallers, s.limitInFlight)
		r.Get("/checkout", s.calling(flaky, s.checkout))
		r.Get("/stock/{sku}", s.calling(inventory, s.stock))
		r.Post("/charge", s.calling(payments, s.charge))
		r.Get("/profile/{id}", s.calling(profiles, s.profile))
		r.Get("/limited", s.handle(s.limited))
		r.Get("/slow", s.handle(s.slow))
	})

	// The dependencies themselves. No bound: a full service must not wait for
	// itself.
	r.Get("/flaky", s.simulated[flaky].ServeHTTP)
	r.Get("/upstream/inventory/stock/{sku}", s.simulated[inventory].ServeHTTP)
	r.Post("/upstream/payments/charge", s.simulated[payments].ServeHTTP)
	r.Get("/upstream/payments/charges", s.payments.ServeLedger)
	r.Get("/upstream/profiles/{id}", s.simulated[profiles].ServeHTTP)

	// What goes wrong with them, on purpose.
	r.Get("/faults", s.handle(s.faults))
	r.Get("/faults/{dependency}", s.handle(s.fault))
	r.Group(func(r chi.Router) {
		r.Use(s.controlled)
		r.Put("/faults/{dependency}", s.handle(s.setFault))
		r.Delete("/faults/{dependency}", s.handle(s.resetFault))
		r.Delete("/faults", s.handle(s.resetFaults))
		r.Post("/reset", s.handle(s.reset))
		r.Post("/send", s.handle(s.send))
	})

	// For those who run it. Looking changes nothing.
	r.Get("/status", s.handle(s.status))
	r.Get("/events", s.handle(s.stream))
	r.Get("/metrics", s.metrics.ServeHTTP)
	r.Get("/healthz", s.handle(healthz))
	r.Get("/readyz", s.handle(s.readyz))

	// The live page.
	r.Get("/", s.handle(page))
	r.Get("/console/{file}", s.handle(page))
	return r
}
