package observe

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/storefront/internal/dependency"
)

// Metrics are what Prometheus gets to see of one service. The values of every label
// must come from a fixed set: each new one is a time series for good.
type Metrics struct {
	http.Handler // answers in one of Prometheus's formats

	Transitions *prometheus.CounterVec // name, from, to

	// Looked up once, as looking up labels costs more than counting does. The maps are
	// never written to.
	Decisions map[string]prometheus.Counter // by what ratelimit.Decision says
	Shed      map[string]prometheus.Counter // by route
	Fallbacks prometheus.Counter            // decisions without the Redis

	registry         *prometheus.Registry
	breakerRejected  *prometheus.CounterVec   // name
	attempts         *prometheus.CounterVec   // dependency, outcome
	calls            *prometheus.HistogramVec // dependency
	budgetRefused    *prometheus.CounterVec   // dependency
	bulkheadRejected *prometheus.CounterVec   // dependency
	requests         *prometheus.CounterVec   // route, code
	duration         *prometheus.HistogramVec // route

	mu     sync.Mutex
	series map[routeCode]series // guarded by mu; looked up once, too
}

// Dependency is what is counted of one dependency.
type Dependency struct {
	Attempts         map[dependency.Outcome]prometheus.Counter // never written to
	Calls            prometheus.Observer                       // in seconds
	BudgetRefused    prometheus.Counter
	BreakerRejected  prometheus.Counter
	BulkheadRejected prometheus.Counter
}

// routeCode is the labels of a request, series what it is counted in.
type (
	routeCode struct {
		route string
		code  int
	}
	series struct {
		count prometheus.Counter
		took  prometheus.Observer
	}
)

// buckets go from an answer out of memory to the longest call with the default settings,
// in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// NewMetrics returns Metrics with nothing counted, and Go's own beside them.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), series: map[routeCode]series{}}
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.Transitions = counter("circuit_breaker_transitions_total", "Changes of a breaker's state.", "name", "from", "to")
	m.breakerRejected = counter("circuit_breaker_rejected_total", "Calls that a breaker refused.", "name")
	m.attempts = counter("dependency_attempts_total", "Requests to a dependency, by how they ended.", "dependency", "outcome")
	m.calls = histogram("dependency_call_duration_seconds", "Calls to a dependency: the wait for a permit, the attempts and the waits between them. Not those that were refused.", "dependency")
	m.budgetRefused = counter("retry_budget_refused_total", "Retries that the budget refused.", "dependency")
	m.bulkheadRejected = counter("bulkhead_rejected_total", "Calls for which there was no permit.", "dependency")
	m.Decisions = lookUp(counter("ratelimit_decisions_total", "Requests to /limited: allowed, rejected by the bucket of the key, or by the overflow bucket that the keys beyond the cap share.", "decision"),
		"allowed", "rejected", "overflow")
	m.Fallbacks = counter("ratelimit_fallback_total", "Decisions of a rate limit by the buckets of this instance, as Redis did not answer.").WithLabelValues()
	m.Shed = lookUp(counter("shed_rejected_total", "Requests shed, by route. Global is the cap over all business routes.", "route"),
		"/slow", "/events", "/send", "global")
	m.requests = counter("http_requests_total", "Requests that ended. Code 499 got no answer: the caller hung up, or a simulator broke the connection.", "route", "code")
	m.duration = histogram("http_request_duration_seconds", "Requests, by route.", "route")
	return m
}

func lookUp(vec *prometheus.CounterVec, values ...string) map[string]prometheus.Counter {
	series := map[string]prometheus.Counter{}
	for _, value := range values {
		series[value] = vec.WithLabelValues(value)
	}
	return series
}

// Dependency makes the series of a dependency visible, and returns them.
func (m *Metrics) Dependency(name string) *Dependency {
	d := &Dependency{
		Attempts:         map[dependency.Outcome]prometheus.Counter{},
		Calls:            m.calls.WithLabelValues(name),
		BudgetRefused:    m.budgetRefused.WithLabelValues(name),
		BreakerRejected:  m.breakerRejected.WithLabelValues(name),
		BulkheadRejected: m.bulkheadRejected.WithLabelValues(name),
	}
	for _, outcome := range dependency.Outcomes {
		d.Attempts[outcome] = m.attempts.WithLabelValues(name, string(outcome))
	}
	return d
}

// Gauge adds a gauge that is read when somebody looks. labels are the same for
// ever; nil is none.
func (m *Metrics) Gauge(name, help string, labels map[string]string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
}

// Route makes a route visible before its first request.
func (m *Metrics) Route(route string) { m.duration.WithLabelValues(route) }

// Request counts a request to a route. Code is the status of the answer, 499 if there
// was none.
func (m *Metrics) Request(route string, code int, took time.Duration) {
	labels := routeCode{route, code}
	m.mu.Lock()
	s, ok := m.series[labels]
	if !ok {
		s = series{m.requests.WithLabelValues(route, strconv.Itoa(code)), m.duration.WithLabelValues(route)}
		m.series[labels] = s
	}
	m.mu.Unlock()
	s.count.Inc()
	s.took.Observe(took.Seconds())
}
