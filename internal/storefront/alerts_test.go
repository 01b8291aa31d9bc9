package storefront

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/storefront/internal/simulator"
)

var update = flag.Bool("update", false, "rewrite scripts/alerts_test.yml")

// scrapeEvery is scripts/prometheus.yml's scrape_interval.
const scrapeEvery = 5 * time.Second

// story is what the service goes through, and the alerts that come of it.
type story struct {
	name   string
	cfg    func(*Config)
	begin  func(w *world)
	tick   func(w *world) // every second, for as long as there are visitors
	visits time.Duration
	lasts  time.Duration
	series []string
	alerts []expectation
}

// expectation is that an alert fires, once for each of some labels, or not at all.
type expectation struct {
	at    time.Duration
	alert string
	fires []firing
}

type firing struct{ labels, summary string }

const (
	flakyState = `circuit_breaker_state{name="flaky"}`
	opened     = `circuit_breaker_transitions_total{from="closed",name="flaky",to="open"}`
	reopened   = `circuit_breaker_transitions_total{from="half_open",name="flaky",to="open"}`
	shedSlow   = `shed_rejected_total{route="/slow"}`
	shedGlobal = `shed_rejected_total{route="global"}`
	askedSlow  = `http_request_duration_seconds_count{route="/slow"}`
	askedOk    = `http_request_duration_seconds_count{route="/limited"}`
	refused    = `retry_budget_refused_total{dependency="flaky"}`
)

var (
	firstOpening = firing{"{severity: warn, name: flaky, from: closed, to: open}", "The breaker flaky went from closed to open within the last five minutes."}
	reopening    = firing{"{severity: warn, name: flaky, from: half_open, to: open}", "The breaker flaky went from half_open to open within the last five minutes."}
)

var stories = []story{
	{
		name:   "a dependency hangs, and its breaker keeps probing",
		begin:  func(w *world) { w.fault(flaky, simulator.Fault{Script: "H"}) },
		tick:   func(w *world) { w.begin(w.Context(), "/checkout") },
		visits: 6 * time.Minute, lasts: 12 * time.Minute,
		series: []string{flakyState, opened, reopened},
		alerts: []expectation{
			{time.Minute, "BreakerNotClosed", nil}, // not yet
			{time.Minute, "BreakerOpened", []firing{firstOpening, reopening}},
			{5 * time.Minute, "BreakerNotClosed", []firing{{"{severity: page, name: flaky}", "The breaker flaky has not closed for two minutes."}}},
			{6 * time.Minute, "BreakerOpened", []firing{reopening}},
			{6 * time.Minute, "BreakerNotClosed", []firing{{"{severity: page, name: flaky}", "The breaker flaky has not closed for two minutes."}}},
			// Nobody calls any more: its probe is due, and nothing is known.
			{8 * time.Minute, "BreakerNotClosed", nil},
			{12 * time.Minute, "BreakerOpened", nil},
		},
	},
	{
		name: "a breaker opens, and nobody comes for the probe",
		begin: func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "F"})
			for range 4 {
				w.get("/checkout")
			}
		},
		lasts:  6 * time.Minute,
		series: []string{flakyState, opened, reopened},
		alerts: []expectation{
			{time.Minute, "BreakerNotClosed", nil},
			{3 * time.Minute, "BreakerNotClosed", nil},
			{6 * time.Minute, "BreakerNotClosed", nil},
		},
	},
	{
		name:   "an idle service",
		lasts:  6 * time.Minute,
		series: []string{flakyState, opened, reopened, shedSlow, shedGlobal, askedSlow, askedOk, refused},
		alerts: []expectation{
			{6 * time.Minute, "BreakerNotClosed", nil}, {6 * time.Minute, "BreakerOpened", nil},
			{6 * time.Minute, "RequestsShed", nil}, {6 * time.Minute, "RetriesRefused", nil},
		},
	},
	{
		name:   "a healthy service with visitors",
		tick:   func(w *world) { w.begin(w.Context(), "/checkout"); w.begin(w.Context(), "/slow") },
		visits: 6 * time.Minute, lasts: 6 * time.Minute,
		series: []string{flakyState, opened, reopened, shedSlow, shedGlobal, askedSlow, askedOk, refused},
		alerts: []expectation{
			{6 * time.Minute, "BreakerNotClosed", nil}, {6 * time.Minute, "BreakerOpened", nil},
			{6 * time.Minute, "RequestsShed", nil}, {6 * time.Minute, "RetriesRefused", nil},
		},
	},
	{
		name: "more work for /slow than it has room for",
		tick: func(w *world) {
			for range 4 {
				w.begin(w.Context(), "/slow")
			}
		},
		visits: 4 * time.Minute, lasts: 10 * time.Minute,
		series: []string{shedSlow, shedGlobal, askedSlow, askedOk},
		alerts: []expectation{
			{3 * time.Minute, "RequestsShed", []firing{{"{severity: warn, route: /slow}", "75% of the requests to /slow are shed."}}},
			{10 * time.Minute, "RequestsShed", nil},
		},
	},
	{
		name:   "more requests than the global cap",
		cfg:    func(c *Config) { c.MaxInFlight = 1 },
		tick:   func(w *world) { w.begin(w.Context(), "/slow"); w.begin(w.Context(), "/limited") },
		visits: 4 * time.Minute, lasts: 4 * time.Minute,
		series: []string{shedSlow, shedGlobal, askedSlow, askedOk},
		alerts: []expectation{{4 * time.Minute, "RequestsShed", []firing{{"{severity: warn, route: global}", "75% of the requests to global are shed."}}}},
	},
	{
		name: "a retry budget is spent",
		cfg:  func(c *Config) { c.Flaky.Retry.BudgetFloor, c.Flaky.Retry.BudgetShare = 0.1, 0.1 },
		begin: func(w *world) {
			w.fault(flaky, simulator.Fault{Script: "FS"})
		},
		tick:   func(w *world) { w.begin(w.Context(), "/checkout") },
		visits: 2 * time.Minute, lasts: 9 * time.Minute,
		series: []string{refused},
		alerts: []expectation{
			{2 * time.Minute, "RetriesRefused", []firing{{"{severity: warn, dependency: flaky}", "The budget refuses retries of flaky."}}},
			{9 * time.Minute, "RetriesRefused", nil},
		},
	},
}

// live runs a story and returns the values of its series at each scrape.
func (s story) live(t *testing.T) map[string][]string {
	values := map[string][]string{}
	cfg := Config{Log: quiet, SlowWork: 1500 * time.Millisecond} // none ends as another comes
	cfg.Flaky.Retry.Jitter = func(ceiling time.Duration) time.Duration { return ceiling }
	if s.cfg != nil {
		s.cfg(&cfg)
	}
	inBubble(t, cfg, func(w *world) {
		for now := time.Duration(0); now <= s.lasts; now += time.Second {
			if now%scrapeEvery == 0 {
				scraped := w.scrape()
				for _, name := range s.series {
					value, ok := scraped[name]
					if !ok {
						w.Fatalf("%s: /metrics has no %s", s.name, name)
					}
					values[name] = append(values[name], value)
				}
			}
			if now == 0 && s.begin != nil {
				s.begin(w)
			}
			if now < s.visits {
				s.tick(w)
			}
			time.Sleep(time.Until(w.start.Add(now + time.Second)))
		}
	})
	return values
}

// The unit tests of the alert rules, for promtool, have series that the service really
// shows, scraped under the fake clock: the rules cannot miss what it does.
func TestAlertsAreTestedWithRealSeries(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "# Written by go test ./internal/storefront -run Alerts -update, from what the service\n"+
		"# shows in each story. \"make alerts\" runs it.\nrule_files: [alerts.yml]\nevaluation_interval: %v\ntests:\n", scrapeEvery)
	for _, s := range stories {
		values := s.live(t)
		fmt.Fprintf(&out, "  - name: %s\n    interval: %v\n    input_series:\n", s.name, scrapeEvery)
		for _, name := range s.series {
			fmt.Fprintf(&out, "      - series: '%s'\n        values: '%s'\n", name, strings.Join(values[name], " "))
		}
		fmt.Fprint(&out, "    alert_rule_test:\n")
		for _, e := range s.alerts {
			fmt.Fprintf(&out, "      - eval_time: %v\n        alertname: %s\n", e.at, e.alert)
			if e.fires == nil {
				continue
			}
			fmt.Fprint(&out, "        exp_alerts:\n")
			for _, f := range e.fires {
				fmt.Fprintf(&out, "          - exp_labels: %s\n            exp_annotations: {summary: '%s'}\n", f.labels, f.summary)
			}
		}
	}
	const file = "../../scripts/alerts_test.yml"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the service shows other series than %s; got:\n%s", file, out.String())
	}
}

// With a dependency that hangs, a plain "== 1" does not hold for two minutes. It is why
// the rule is what it is.
func TestAPlainRuleWouldMissAHangingDependency(t *testing.T) {
	longest, run := 0, 0
	for _, value := range stories[0].live(t)[flakyState] {
		if run++; value != "1" {
			run = 0
		}
		longest = max(longest, run)
	}
	if time.Duration(longest)*scrapeEvery >= 2*time.Minute || longest == 0 {
		t.Errorf("open in %d scrapes in a row", longest)
	}
}

// Every alert has a story in which it fires, and one in which it does not.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	rules, err := os.ReadFile("../../scripts/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(names) != 4 {
		t.Errorf("%d alerts, want 4", len(names))
	}
	for _, name := range names {
		fires, silent := false, false
		for _, s := range stories {
			for _, e := range s.alerts {
				if e.alert == name[1] {
					fires, silent = fires || e.fires != nil, silent || e.fires == nil
				}
			}
		}
		if !fires || !silent {
			t.Errorf("%s: fires in a story %v, is silent in one %v", name[1], fires, silent)
		}
	}
}
