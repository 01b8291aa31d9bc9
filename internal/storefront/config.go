package storefront

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/storefront/internal/dependency"
	"example.com/storefront/internal/ratelimit"
	"example.com/storefront/internal/shed"
)

// Config configures the whole service. A zero field means its default, so the zero
// Config is the default service. New rejects values out of range and names them by
// their flags; -h lists the ranges.
type Config struct {
	// FlakyURL is what /checkout calls, an http or https URL. Empty means the
	// service's own /flaky, at the address that the request came in on, over
	// plain HTTP.
	FlakyURL string
	// Flaky is how /checkout calls it. Zero fields are those of the table of
	// policies, the breaker's Failures too, so it cannot have a FailureRatio.
	// New sets the callbacks.
	Flaky dependency.Policy
	// MaxInFlight is how many business requests there may be at once. 0 means
	// 1024.
	MaxInFlight int
	// CallerRate is how many requests a second each caller may make over all
	// business routes. A caller is its X-API-Key or, without one, the address of
	// its connection. 0 means no limit.
	CallerRate float64
	// CallerBurst is how many of them may come at once. 0 means 10.
	CallerBurst int
	// LimitBurst is how many tokens a bucket of /limited holds. 0 means 3.
	LimitBurst int
	// LimitRate is how many tokens a second flow into it. 0 means 1.
	LimitRate float64
	// LimitMaxKeys is how many buckets a limit keeps; further keys share one. 0
	// means 100,000.
	LimitMaxKeys int
	// Redis is the URL, redis:// or rediss:// for TLS, of a Redis in which instances share
	// the buckets of both limits. Empty means that each has its own.
	Redis string
	// SlowPermits is how many requests /slow works on at once. 0 means 2.
	SlowPermits int
	// SlowWork is how long it works on each. 0 means 2 s.
	SlowWork time.Duration
	// SlowPolicy says which requests to /slow are shed. Empty means shed.Newest.
	SlowPolicy shed.Policy
	// SlowQueue is how many may wait where the policy has them wait. 0 means 4.
	SlowQueue int
	// SlowMaxWait is how long they may. 0 means 5 s.
	SlowMaxWait time.Duration
	// Controls says who may break things. Empty means ControlsAuto, for which a
	// handler of New's goes by the address on which each request came in.
	Controls Controls
	// DrainTimeout bounds how long Serve waits for accepted work at its end. 0
	// means 10 s.
	DrainTimeout time.Duration
	// Log gets errors of ours as ERROR, breakers that open and a Redis that is lost
	// as WARN, other transitions, a Redis that is back, faults, resets and the drain
	// as INFO, requests and attempts as DEBUG. nil means slog.Default().
	Log *slog.Logger
}

// setting is one field of Config as the world sees it: a flag, a default and a
// range. Every use of the three reads the same row.
type setting struct {
	name  string
	bind  func(*flag.FlagSet) // as a flag, set to the default
	fill  func()              // zero becomes the default
	check func() error
}

// settings has one row per field.
func (c *Config) settings() []setting {
	flaky := policies[flaky]
	const long, many = time.Hour, 1_000_000
	integer, number, duration := (*flag.FlagSet).IntVar, (*flag.FlagSet).Float64Var, (*flag.FlagSet).DurationVar
	return []setting{
		address("flaky-url", &c.FlakyURL, checkFlakyURL, "`url` that /checkout calls, instead of this service's /flaky"),
		within(duration, "checkout-deadline", &c.Flaky.Deadline, flaky.Deadline, time.Millisecond, long, "total time for a checkout once it has its permit: attempts and the waits between them"),
		within(duration, "attempt-timeout", &c.Flaky.Timeout, flaky.Timeout, time.Millisecond, long, "time for one attempt"),
		within(integer, "retry-attempts", &c.Flaky.Retry.Attempts, flaky.Retry.Attempts, 1, 100, "attempts per call, the first one included"),
		within(duration, "retry-base", &c.Flaky.Retry.Base, flaky.Retry.Base, time.Microsecond, long, "ceiling of the first wait, doubled for each further one"),
		within(duration, "retry-cap", &c.Flaky.Retry.Cap, flaky.Retry.Cap, time.Microsecond, long, "highest ceiling of a wait"),
		within(number, "retry-budget", &c.Flaky.Retry.BudgetShare, flaky.Retry.BudgetShare, 0.001, many, "retries granted for each call, over the last 10s"),
		within(number, "retry-floor", &c.Flaky.Retry.BudgetFloor, flaky.Retry.BudgetFloor, 0.001, many, "retries a second granted however few calls there are"),
		within(integer, "bulkhead", &c.Flaky.Bulkhead.Permits, flaky.Bulkhead.Permits, 1, many, "checkouts that may run at once"),
		within(duration, "bulkhead-wait", &c.Flaky.Bulkhead.MaxWait, flaky.Bulkhead.MaxWait, 0, long, "how long a checkout may wait to be one of them"),
		within(integer, "breaker-failures", &c.Flaky.Breaker.Failures, flaky.Breaker.Failures, 1, many, "failed calls in a row that open the breaker"),
		within(duration, "breaker-cooldown", &c.Flaky.Breaker.Cooldown, flaky.Breaker.Cooldown, time.Millisecond, long, "how long it stays open before it probes"),
		within(integer, "breaker-probes", &c.Flaky.Breaker.Probes, flaky.Breaker.Probes, 1, many, "probes that must succeed to close it"),
		within(integer, "max-in-flight", &c.MaxInFlight, 1024, 1, many, "requests at once, over all business routes"),
		orZero(&c.CallerRate, within(number, "caller-rate", &c.CallerRate, 0, 0.001, many, "requests a second of one caller over all business routes, 0 for no limit")),
		within(integer, "caller-burst", &c.CallerBurst, 10, 1, many, "tokens a caller's bucket holds"),
		within(integer, "limit-burst", &c.LimitBurst, 3, 1, many, "tokens a bucket holds"),
		within(number, "limit-rate", &c.LimitRate, 1, 0.001, many, "tokens a second that flow into each bucket"),
		within(integer, "limit-max-keys", &c.LimitMaxKeys, 100_000, 1, 10*many, "keys with a bucket of their own; the rest share one"),
		address("redis", &c.Redis, ratelimit.CheckURL, "`url` of a Redis in which instances share their buckets, redis://[[user]:password@]host[:port][/database]"),
		within(integer, "slow-permits", &c.SlowPermits, 2, 1, many, "requests that /slow works on at once"),
		within(duration, "slow-work", &c.SlowWork, 2*time.Second, time.Millisecond, long, "how long /slow works on a request"),
		oneOf("slow-policy", (*string)(&c.SlowPolicy), "`policy` by which requests to /slow are shed", string(shed.Newest), string(shed.Wait), string(shed.Priority)),
		within(integer, "slow-queue", &c.SlowQueue, 4, 1, 10_000, "requests that may wait, with the policies wait and priority"),
		within(duration, "slow-max-wait", &c.SlowMaxWait, 5*time.Second, time.Millisecond, long, "how long a request may wait, with the policies wait and priority"),
		oneOf("controls", (*string)(&c.Controls), "`who` may set faults, reset, and use ?without= and /send, where auto is this machine alone", string(ControlsAuto), string(ControlsOn), string(ControlsOff)),
		within(duration, "drain-timeout", &c.DrainTimeout, 10*time.Second, time.Millisecond, long, "how long a drain waits for accepted work"),
	}
}

// Flags adds the fields to fs as flags, each set to its default.
func (c *Config) Flags(fs *flag.FlagSet) {
	for _, s := range c.settings() {
		s.bind(fs)
	}
}

// Validate returns an error that names, by its flag, every field out of range.
// Unlike New it fills in no defaults: a 0 that a flag has set is an error.
func (c *Config) Validate() error {
	var errs []error
	for _, s := range c.settings() {
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("-%s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// withDefaults is c with its zero fields filled.
func (c Config) withDefaults() Config {
	for _, s := range c.settings() {
		s.fill()
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// within is a number from lo to hi.
func within[T int | float64 | time.Duration](bind func(*flag.FlagSet, *T, string, T, string), name string, field *T, value, lo, hi T, usage string) setting {
	usage += fmt.Sprintf(", %v to %v", lo, hi)
	return setting{
		name: name,
		bind: func(fs *flag.FlagSet) { bind(fs, field, name, value, usage) },
		fill: func() { *field = cmp.Or(*field, value) },
		check: func() error {
			if *field >= lo && *field <= hi { // NaN is neither
				return nil
			}
			return fmt.Errorf("%v is out of range, %v to %v", *field, lo, hi)
		},
	}
}

// orZero is a number that may be 0 as well, out of its range.
func orZero(field *float64, s setting) setting {
	check := s.check
	s.check = func() error {
		if *field == 0 {
			return nil
		}
		return check()
	}
	return s
}

// oneOf is one of some words, the first by default.
func oneOf(name string, field *string, usage string, words ...string) setting {
	last := len(words) - 1
	list := strings.Join(words[:last], ", ") + " or " + words[last]
	return setting{
		name: name,
		bind: func(fs *flag.FlagSet) { fs.StringVar(field, name, words[0], usage+": "+list) },
		fill: func() { *field = cmp.Or(*field, words[0]) },
		check: func() error {
			if !slices.Contains(words, *field) {
				return fmt.Errorf("%q is not %s", *field, list)
			}
			return nil
		},
	}
}

// address is a URL, or empty.
func address(name string, field *string, check func(string) error, usage string) setting {
	return setting{
		name: name,
		bind: func(fs *flag.FlagSet) { fs.StringVar(field, name, "", usage) },
		fill: func() {},
		check: func() error {
			if *field == "" {
				return nil
			}
			return check(*field)
		},
	}
}

func checkFlakyURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", !isPort(u.Port()):
		return fmt.Errorf("%q is not a URL like http://127.0.0.1:3001/flaky", raw)
	case u.User != nil:
		return fmt.Errorf("%q has a user name, which would not be sent", u.Redacted())
	}
	return nil
}

func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil || port == ""
}
