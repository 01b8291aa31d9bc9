package storefront

import (
	"flag"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/storefront/internal/shed"
)

func TestZeroConfigIsTheDefaultService(t *testing.T) {
	var flags Config
	flags.Flags(flag.NewFlagSet("", flag.ContinueOnError)) // sets the defaults
	flags.Log = quiet
	zero := Config{Log: quiet}.withDefaults()
	if !reflect.DeepEqual(zero, flags) {
		t.Errorf("zero value: %+v\nflags:      %+v", zero, flags)
	}
	if row := policies["flaky"]; !reflect.DeepEqual(zero.Flaky, row) {
		t.Errorf("zero value: %+v\npolicy:     %+v", zero.Flaky, row)
	}
	if err := zero.Validate(); err != nil {
		t.Error(err)
	}
}

// Each row is out of range by one step, and its neighbour is not.
func TestValidateNamesTheField(t *testing.T) {
	for _, tt := range []struct {
		name      string
		bad, good func(*Config)
	}{
		{"flaky-url", func(c *Config) { c.FlakyURL = "localhost:80" }, func(c *Config) { c.FlakyURL = "http://localhost:80" }},
		{"flaky-url", func(c *Config) { c.FlakyURL = "ftp://x/" }, func(c *Config) { c.FlakyURL = "https://x/" }},
		{"flaky-url", func(c *Config) { c.FlakyURL = "http:///x" }, func(c *Config) { c.FlakyURL = "http://[::1]/x" }},
		{"flaky-url", func(c *Config) { c.FlakyURL = "http://x\n/" }, func(c *Config) { c.FlakyURL = "" }},
		{"flaky-url", func(c *Config) { c.FlakyURL = "http://x:65536/" }, func(c *Config) { c.FlakyURL = "http://x:65535/" }},
		{"flaky-url", func(c *Config) { c.FlakyURL = "http://me:secret@x/" }, func(c *Config) { c.FlakyURL = "http://x/@" }},
		{"checkout-deadline", func(c *Config) { c.Flaky.Deadline = time.Millisecond - 1 }, func(c *Config) { c.Flaky.Deadline = time.Millisecond }},
		{"attempt-timeout", func(c *Config) { c.Flaky.Timeout = time.Hour + 1 }, func(c *Config) { c.Flaky.Timeout = time.Hour }},
		{"retry-attempts", func(c *Config) { c.Flaky.Retry.Attempts = -1 }, func(c *Config) { c.Flaky.Retry.Attempts = 1 }},
		{"retry-attempts", func(c *Config) { c.Flaky.Retry.Attempts = 101 }, func(c *Config) { c.Flaky.Retry.Attempts = 100 }},
		{"retry-base", func(c *Config) { c.Flaky.Retry.Base = -1 }, func(c *Config) { c.Flaky.Retry.Base = time.Hour }},
		{"retry-cap", func(c *Config) { c.Flaky.Retry.Cap = 1 }, func(c *Config) { c.Flaky.Retry.Cap = time.Microsecond }},
		{"retry-budget", func(c *Config) { c.Flaky.Retry.BudgetShare = math.NaN() }, func(c *Config) { c.Flaky.Retry.BudgetShare = 0.001 }},
		{"retry-floor", func(c *Config) { c.Flaky.Retry.BudgetFloor = -1 }, func(c *Config) { c.Flaky.Retry.BudgetFloor = 1_000_000 }},
		{"bulkhead-wait", func(c *Config) { c.Flaky.Bulkhead.MaxWait = -1 }, func(c *Config) { c.Flaky.Bulkhead.MaxWait = time.Hour }},
		{"max-in-flight", func(c *Config) { c.MaxInFlight = -1 }, func(c *Config) { c.MaxInFlight = 1 }},
		{"caller-rate", func(c *Config) { c.CallerRate = 0.0009 }, func(c *Config) { c.CallerRate = 0.001 }},
		{"caller-burst", func(c *Config) { c.CallerBurst = -1 }, func(c *Config) { c.CallerBurst = 1 }},
		{"limit-max-keys", func(c *Config) { c.LimitMaxKeys = -1 }, func(c *Config) { c.LimitMaxKeys = 1 }},
		{"slow-policy", func(c *Config) { c.SlowPolicy = "Newest" }, func(c *Config) { c.SlowPolicy = shed.Priority }},
		{"controls", func(c *Config) { c.Controls = "yes" }, func(c *Config) { c.Controls = ControlsOff }},
		{"slow-queue", func(c *Config) { c.SlowQueue = 10_001 }, func(c *Config) { c.SlowQueue = 10_000 }},
		{"slow-max-wait", func(c *Config) { c.SlowMaxWait = -1 }, func(c *Config) { c.SlowMaxWait = time.Millisecond }},
		{"bulkhead", func(c *Config) { c.Flaky.Bulkhead.Permits = -1 }, func(c *Config) { c.Flaky.Bulkhead.Permits = 1 }},
		{"breaker-failures", func(c *Config) { c.Flaky.Breaker.Failures = 1_000_001 }, func(c *Config) { c.Flaky.Breaker.Failures = 1_000_000 }},
		{"breaker-cooldown", func(c *Config) { c.Flaky.Breaker.Cooldown = -1 }, func(c *Config) { c.Flaky.Breaker.Cooldown = time.Millisecond }},
		{"breaker-probes", func(c *Config) { c.Flaky.Breaker.Probes = -1 }, func(c *Config) { c.Flaky.Breaker.Probes = 1 }},
		{"limit-burst", func(c *Config) { c.LimitBurst = -1 }, func(c *Config) { c.LimitBurst = 1 }},
		{"limit-rate", func(c *Config) { c.LimitRate = math.NaN() }, func(c *Config) { c.LimitRate = 0.001 }},
		{"limit-rate", func(c *Config) { c.LimitRate = math.Inf(1) }, func(c *Config) { c.LimitRate = 1_000_000 }},
		{"redis", func(c *Config) { c.Redis = "redis://:secret@/0" }, func(c *Config) { c.Redis = "" }},
		{"slow-permits", func(c *Config) { c.SlowPermits = -1 }, func(c *Config) { c.SlowPermits = 1 }},
		{"slow-work", func(c *Config) { c.SlowWork = time.Hour + 1 }, func(c *Config) { c.SlowWork = time.Hour }},
		{"drain-timeout", func(c *Config) { c.DrainTimeout = -1 }, func(c *Config) { c.DrainTimeout = time.Millisecond }},
	} {
		cfg := Config{Log: quiet}
		tt.good(&cfg)
		if _, err := New(cfg); err != nil {
			t.Errorf("%s: %v for a value in range", tt.name, err)
		}
		tt.bad(&cfg)
		h, err := New(cfg)
		if h != nil {
			t.Errorf("%s out of range: a handler beside the error", tt.name)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "-"+tt.name+": ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s out of range: %v, want an error that names it", tt.name, err)
		}
	}
}

func TestValidateReportsEveryField(t *testing.T) {
	_, err := New(Config{LimitBurst: -1, SlowWork: -1, Log: quiet})
	want := "-limit-burst: -1 is out of range, 1 to 1000000\n-slow-work: -1ns is out of range, 1ms to 1h0m0s"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %v", err, want)
	}
}
