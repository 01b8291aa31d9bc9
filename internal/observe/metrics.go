package observe

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are what Prometheus gets to see of one service. The values of every label
// must come from a fixed set: each new one is a time series for good.
type Metrics struct {
	http.Handler // answers in one of Prometheus's formats

	Transitions      *prometheus.CounterVec   // name, from, to
	BreakerRejected  *prometheus.CounterVec   // name
	Attempts         *prometheus.CounterVec   // dependency, outcome
	Calls            *prometheus.HistogramVec // dependency
	BudgetRefused    *prometheus.CounterVec   // dependency
	BulkheadRejected *prometheus.CounterVec   // dependency
	Shed             *prometheus.CounterVec   // route

	Decisions map[string]prometheus.Counter // by what ratelimit.Decision says; never written to

	registry *prometheus.Registry
	requests *prometheus.CounterVec   // route, code
	duration *prometheus.HistogramVec // route

	mu     sync.Mutex
	series map[routeCode]series // guarded by mu; looking up labels is dear
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
	m.BreakerRejected = counter("circuit_breaker_rejected_total", "Calls that a breaker refused.", "name")
	m.Attempts = counter("dependency_attempts_total", "Requests to a dependency, by how they ended.", "dependency", "outcome")
	m.Calls = histogram("dependency_call_duration_seconds", "Calls to a dependency: the wait for a permit, the attempts and the waits between them. Not those that were refused.", "dependency")
	m.BudgetRefused = counter("retry_budget_refused_total", "Retries that the budget refused.", "dependency")
	m.BulkheadRejected = counter("bulkhead_rejected_total", "Calls for which there was no permit.", "dependency")
	m.Decisions = map[string]prometheus.Counter{}
	decisions := counter("ratelimit_decisions_total", "Requests to /limited: allowed, rejected by the bucket of the key, or by the overflow bucket that the keys beyond the cap share.", "decision")
	for _, word := range []string{"allowed", "rejected", "overflow"} {
		m.Decisions[word] = decisions.WithLabelValues(word)
	}
	m.Shed = counter("shed_rejected_total", "Requests shed, by route. Global is the cap over all business routes.", "route")
	m.requests = counter("http_requests_total", "Requests that ended. Code 499 got no answer: the caller hung up, or a simulator broke the connection.", "route", "code")
	m.duration = histogram("http_request_duration_seconds", "Requests, by route.", "route")
	return m
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
