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
	probed     = `circuit_breaker_transitions_total{from="open",name="flaky",to="half_open"}`
	reopened   = `circuit_breaker_transitions_total{from="half_open",name="flaky",to="open"}`
	shedSlow   = `shed_rejected_total{route="/slow"}`
	shedGlobal = `shed_rejected_total{route="global"}`
	askedSlow  = `http_request_duration_seconds_count{route="/slow"}`
	askedOk    = `http_request_duration_seconds_count{route="/limited"}`
	refused    = `retry_budget_refused_total{dependency="flaky"}`
	degraded   = `ratelimit_degraded`
)

var (
	firstOpening = firing{"{instance: a, severity: warn, name: flaky, from: closed, to: open}", "The breaker flaky went from closed to open within the last five minutes."}
	reopening    = firing{"{instance: a, severity: warn, name: flaky, from: half_open, to: open}", "The breaker flaky went from half_open to open within the last five minutes."}
)

var stories = []story{
	{
		name:   "a dependency hangs, and its breaker keeps probing",
		begin:  func(w *world) { w.fault(flaky, simulator.Fault{Script: "H"}) },
		tick:   func(w *world) { w.begin(w.Context(), "/checkout") },
		visits: 6 * time.Minute, lasts: 12 * time.Minute,
		series: []string{flakyState, opened, probed, reopened},
		alerts: []expectation{
			{2*time.Minute + 5*time.Second, "BreakerNotClosed", nil}, // it opened after 10 s
			{2*time.Minute + 10*time.Second, "BreakerNotClosed", []firing{{"{instance: a, severity: page, name: flaky}", "The breaker flaky has been open, or probing in vain, for two minutes."}}},
			{time.Minute, "BreakerOpened", []firing{firstOpening, reopening}},
			{6 * time.Minute, "BreakerOpened", []firing{reopening}},
			{6 * time.Minute, "BreakerNotClosed", []firing{{"{instance: a, severity: page, name: flaky}", "The breaker flaky has been open, or probing in vain, for two minutes."}}},
			// Nobody calls any more: its probe is due, and nothing is known.
			{8 * time.Minute, "BreakerNotClosed", nil},
			{10*time.Minute + 45*time.Second, "BreakerOpened", []firing{reopening}},
			{11*time.Minute + 20*time.Second, "BreakerOpened", nil},
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
			{2*time.Minute + 15*time.Second, "BreakerNotClosed", nil},
			{6 * time.Minute, "BreakerNotClosed", nil},
		},
	},
	{
		name: "a breaker opens for a minute, and closes again",
		cfg:  func(c *Config) { c.Flaky.Breaker.Cooldown = time.Minute },
		begin: func(w *world) {
			w.fault(flaky, simulator.Fault{Script: strings.Repeat("F", 12) + strings.Repeat("S", 52)})
		},
		tick:   func(w *world) { w.begin(w.Context(), "/checkout") },
		visits: 4 * time.Minute, lasts: 4 * time.Minute,
		series: []string{flakyState},
		alerts: []expectation{
			{2*time.Minute + 5*time.Second, "BreakerNotClosed", nil},
			{3 * time.Minute, "BreakerNotClosed", nil},
			{4 * time.Minute, "BreakerNotClosed", nil},
		},
	},
	{
		name:  "a dependency is down, and a caller comes now and then: the probe is due for most of the time",
		begin: func(w *world) { w.fault(flaky, simulator.Fault{Script: "F"}) },
		cfg:   func(c *Config) { c.Flaky.Breaker.Failures = 1 },
		tick: func(w *world) {
			if time.Since(w.start)%(50*time.Second) == 0 {
				w.begin(w.Context(), "/checkout")
			}
		},
		visits: 5 * time.Minute, lasts: 5 * time.Minute,
		series: []string{flakyState},
		alerts: []expectation{
			{5 * time.Minute, "BreakerNotClosed", []firing{{"{instance: a, severity: page, name: flaky}", "The breaker flaky has been open, or probing in vain, for two minutes."}}},
		},
	},
	{
		name:   "an idle service",
		lasts:  6 * time.Minute,
		series: []string{flakyState, opened, reopened, shedSlow, shedGlobal, askedSlow, askedOk, refused, degraded},
		alerts: []expectation{
			{6 * time.Minute, "BreakerNotClosed", nil}, {6 * time.Minute, "BreakerOpened", nil},
			{6 * time.Minute, "RequestsShed", nil}, {6 * time.Minute, "RetriesRefused", nil}, {6 * time.Minute, "RateLimitDegraded", nil},
		},
	},
	{
		name:   "a healthy service with visitors",
		tick:   func(w *world) { w.begin(w.Context(), "/checkout"); w.begin(w.Context(), "/slow") },
		visits: 6 * time.Minute, lasts: 6 * time.Minute,
		series: []string{flakyState, opened, reopened, shedSlow, shedGlobal, askedSlow, askedOk, refused, degraded},
		alerts: []expectation{
			{6 * time.Minute, "BreakerNotClosed", nil}, {6 * time.Minute, "BreakerOpened", nil},
			{6 * time.Minute, "RequestsShed", nil}, {6 * time.Minute, "RetriesRefused", nil}, {6 * time.Minute, "RateLimitDegraded", nil},
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
			{time.Minute, "RequestsShed", nil}, // not yet
			{time.Minute + 15*time.Second, "RequestsShed", []firing{{"{instance: a, severity: warn, route: /slow}", "75.17% of the requests are shed by /slow."}}},
			{10 * time.Minute, "RequestsShed", nil},
		},
	},
	{
		name:   "a request of 26 is shed",
		cfg:    func(c *Config) { c.SlowWork = 500 * time.Millisecond },
		tick:   burstEvery(24 * time.Second),
		visits: 6 * time.Minute, lasts: 6 * time.Minute,
		series: []string{shedSlow, shedGlobal, askedSlow, askedOk},
		alerts: []expectation{{6 * time.Minute, "RequestsShed", nil}},
	},
	{
		name:   "a request of 14 is shed",
		cfg:    func(c *Config) { c.SlowWork = 500 * time.Millisecond },
		tick:   burstEvery(12 * time.Second),
		visits: 6 * time.Minute, lasts: 6 * time.Minute,
		series: []string{shedSlow, shedGlobal, askedSlow, askedOk},
		alerts: []expectation{{6 * time.Minute, "RequestsShed", []firing{{"{instance: a, severity: warn, route: /slow}", "7.143% of the requests are shed by /slow."}}}},
	},
	{
		name:   "more requests than the global cap",
		cfg:    func(c *Config) { c.MaxInFlight = 1 },
		tick:   func(w *world) { w.begin(w.Context(), "/slow"); w.begin(w.Context(), "/limited") },
		visits: 4 * time.Minute, lasts: 4 * time.Minute,
		series: []string{shedSlow, shedGlobal, askedSlow, askedOk},
		alerts: []expectation{{4 * time.Minute, "RequestsShed", []firing{{"{instance: a, severity: warn, route: global}", "75% of the requests are shed by global."}}}},
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
			{2 * time.Minute, "RetriesRefused", []firing{{"{instance: a, severity: warn, dependency: flaky}", "The budget refuses retries of flaky."}}},
			{9 * time.Minute, "RetriesRefused", nil},
		},
	},
	{
		name:   "a rate limit whose Redis is not there",
		cfg:    func(c *Config) { c.Redis = "redis://127.0.0.1:1/0" }, // where nobody listens
		lasts:  3 * time.Minute,
		series: []string{degraded},
		alerts: []expectation{
			{115 * time.Second, "RateLimitDegraded", nil},
			{120 * time.Second, "RateLimitDegraded", []firing{{"{instance: a, severity: warn}", "The rate limit has not been shared for two minutes, as Redis does not answer."}}},
		},
	},
}

// burstEvery asks for /slow every second, and now and then for three at once, one of
// which is shed.
func burstEvery(d time.Duration) func(w *world) {
	return func(w *world) {
		w.begin(w.Context(), "/slow")
		if time.Since(w.start)%d == 0 {
			w.begin(w.Context(), "/slow")
			w.begin(w.Context(), "/slow")
		}
	}
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

// of is a series as an instance shows it.
func of(series, instance string) string {
	name, labels, labelled := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	if labelled {
		labels += ","
	}
	return fmt.Sprintf("%s{%sinstance=%q}", name, labels, instance)
}

// The unit tests of the alert rules, for promtool, have series that the service really
// shows, scraped under the fake clock: the rules cannot miss what it does.
func TestAlertsAreTestedWithRealSeries(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "# Written by go test ./internal/storefront -run Alerts -update, from what the service\n"+
		"# shows in each story. \"make alerts\" runs it.\nrule_files: [alerts.yml]\nevaluation_interval: %v\ntests:\n", scrapeEvery)
	for _, s := range stories {
		values := s.live(t)
		fmt.Fprintf(&out, "  - name: '%s'\n    interval: %v\n    input_series:\n", s.name, scrapeEvery)
		for _, name := range s.series {
			// Beside it another instance, at which nothing happens.
			fmt.Fprintf(&out, "      - series: '%s'\n        values: '%s'\n", of(name, "a"), strings.Join(values[name], " "))
			fmt.Fprintf(&out, "      - series: '%s'\n        values: '0+0x%d'\n", of(name, "b"), len(values[name])-1)
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

// The rules know the routes that are under the global cap, and Prometheus scrapes as
// often as the stories do.
func TestAlertsKnowTheService(t *testing.T) {
	rules, err := os.ReadFile("../../scripts/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`route=~"([^"]*)"`).FindStringSubmatch(string(rules))
	if m == nil {
		t.Fatal("no rule names routes")
	}
	capped := regexp.MustCompile("^(?:" + m[1] + ")$")
	inBubble(t, Config{MaxInFlight: 1}, func(w *world) {
		slow := w.begin(w.Context(), "/slow")
		for _, p := range pinned {
			if p.route == "/events" {
				continue
			}
			method, _, _ := strings.Cut(p.allow, ",")
			got := w.sendBody(w.Context(), method, p.path, strings.NewReader(p.body))
			if busy := got.String() == "503 busy"; busy != capped.MatchString(p.route) {
				w.Errorf("%s: %v, while the rules have it under the cap: %v", p.route, got, !busy)
			}
		}
		<-slow
	})
	config, err := os.ReadFile("../../scripts/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\n  scrape_interval: %v\n", scrapeEvery); !strings.Contains(string(config), want) {
		t.Errorf("scripts/prometheus.yml lacks%s", want)
	}
}

// Every alert has a story in which it fires, and one in which it does not.
func TestEveryAlertIsTestedBothWays(t *testing.T) {
	rules, err := os.ReadFile("../../scripts/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(names) != 5 {
		t.Errorf("%d alerts, want 5", len(names))
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
