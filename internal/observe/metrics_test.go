package observe

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"example.com/storefront/internal/dependency"
)

func metrics(t *testing.T) *Metrics {
	t.Helper()
	m := NewMetrics()
	m.Gauge("reading", "Read when somebody looks.", map[string]string{"name": "x"}, func() float64 { return 0.5 })
	m.Transitions.WithLabelValues("x", "closed", "open").Inc()
	d := m.Dependency("x")
	d.Attempts[dependency.OK].Inc()
	d.Calls.Observe(1)
	d.BudgetRefused.Inc()
	d.BreakerRejected.Inc()
	d.BulkheadRejected.Inc()
	m.Decisions["allowed"].Inc()
	m.Shed["/slow"].Inc()
	m.Route("/unused")
	m.Request("/x", 200, 30*time.Millisecond)
	m.Request("/x", 200, 30*time.Millisecond)
	m.Request("/x", 503, time.Minute)
	return m
}

func TestMetricsAreNamedAsPrometheusHasIt(t *testing.T) {
	families, err := metrics(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestRequestsAreCountedByRouteAndCode(t *testing.T) {
	rec := httptest.NewRecorder()
	metrics(t).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`reading{name="x"} 0.5`,
		`http_requests_total{code="200",route="/x"} 2`,
		`http_requests_total{code="503",route="/x"} 1`,
		`http_request_duration_seconds_bucket{route="/x",le="0.025"} 0`,
		`http_request_duration_seconds_bucket{route="/x",le="0.05"} 2`,
		`http_request_duration_seconds_bucket{route="/x",le="10"} 2`,
		`http_request_duration_seconds_count{route="/x"} 3`,
		`http_request_duration_seconds_count{route="/unused"} 0`,
	} {
		if !strings.Contains(rec.Body.String(), "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, rec.Body)
		}
	}
}
