package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files and the output in README.md")

func TestHelpListsEveryFlagOnce(t *testing.T) {
	var out bytes.Buffer
	p := process{args: []string{"-h"}, stdout: &out}
	if code := p.run(); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	const golden = "../../testdata/help.golden"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got:\n%s\nwant %s:\n%s", out.String(), golden, want)
	}
	new(options).flags().VisitAll(func(f *flag.Flag) {
		if n := strings.Count(out.String(), "\n  -"+f.Name+" "); n != 1 {
			t.Errorf("-%s stands %d times in the help, want once", f.Name, n)
		}
	})
}

// bad has a value out of range, or of the wrong kind, for every flag.
var bad = []struct{ flag, value, want string }{
	{"addr", "3000", `-addr: "3000" is not host:port`},
	{"addr", "localhost:99999", `-addr: "99999" is not a port`},
	{"log-level", "loud", `-log-level: "loud" is not debug, info, warn or error`},
	{"log-format", "xml", `-log-format: "xml" is not text or json`},
	{"flaky-url", "localhost:3001", `-flaky-url: "localhost:3001" is not a URL like http://127.0.0.1:3001/flaky`},
	{"checkout-deadline", "0s", "-checkout-deadline: 0s is out of range, 1ms to 1h0m0s"},
	{"attempt-timeout", "2h", "-attempt-timeout: 2h0m0s is out of range, 1ms to 1h0m0s"},
	{"retry-attempts", "0", "-retry-attempts: 0 is out of range, 1 to 100"},
	{"retry-base", "-1s", "-retry-base: -1s is out of range, 1µs to 1h0m0s"},
	{"retry-budget", "0", "-retry-budget: 0 is out of range, 0.001 to 1e+06"},
	{"retry-budget", "NaN", "-retry-budget: NaN is out of range, 0.001 to 1e+06"},
	{"retry-floor", "0", "-retry-floor: 0 is out of range, 0.001 to 1e+06"},
	{"retry-floor", "50/s", `invalid value "50/s" for flag -retry-floor: parse error`},
	{"retry-cap", "0s", "-retry-cap: 0s is out of range, 1µs to 1h0m0s"},
	{"bulkhead", "0", "-bulkhead: 0 is out of range, 1 to 1000000"},
	{"bulkhead", "9223372036854775808", `invalid value "9223372036854775808" for flag -bulkhead: value out of range`},
	{"bulkhead-wait", "-1ns", "-bulkhead-wait: -1ns is out of range, 0s to 1h0m0s"},
	{"breaker-failures", "0", "-breaker-failures: 0 is out of range, 1 to 1000000"},
	{"breaker-cooldown", "0s", "-breaker-cooldown: 0s is out of range, 1ms to 1h0m0s"},
	{"breaker-cooldown", "10", `invalid value "10" for flag -breaker-cooldown: parse error`},
	{"breaker-probes", "0", "-breaker-probes: 0 is out of range, 1 to 1000000"},
	{"limit-burst", "0", "-limit-burst: 0 is out of range, 1 to 1000000"},
	{"limit-burst", "x", `invalid value "x" for flag -limit-burst: parse error`},
	{"limit-max-keys", "0", "-limit-max-keys: 0 is out of range, 1 to 10000000"},
	{"caller-rate", "-1", "-caller-rate: -1 is out of range, 0.001 to 1e+06"},
	{"caller-rate", "NaN", "-caller-rate: NaN is out of range, 0.001 to 1e+06"},
	{"caller-burst", "0", "-caller-burst: 0 is out of range, 1 to 1000000"},
	{"max-in-flight", "0", "-max-in-flight: 0 is out of range, 1 to 1000000"},
	{"limit-rate", "NaN", "-limit-rate: NaN is out of range, 0.001 to 1e+06"},
	{"limit-rate", "0", "-limit-rate: 0 is out of range, 0.001 to 1e+06"},
	{"redis", "127.0.0.1:6379", `-redis: must be like redis://127.0.0.1:6379/0`},
	{"redis", "http://:secret@127.0.0.1:6379", `-redis: must be like redis://127.0.0.1:6379/0`},
	{"slow-permits", "0", "-slow-permits: 0 is out of range, 1 to 1000000"},
	{"slow-policy", "oldest", `-slow-policy: "oldest" is not newest, wait or priority`},
	{"slow-queue", "0", "-slow-queue: 0 is out of range, 1 to 10000"},
	{"slow-max-wait", "0s", "-slow-max-wait: 0s is out of range, 1ms to 1h0m0s"},
	{"slow-work", "0s", "-slow-work: 0s is out of range, 1ms to 1h0m0s"},
	{"controls", "yes", `-controls: "yes" is not auto, on or off`},
	{"drain-timeout", "0s", "-drain-timeout: 0s is out of range, 1ms to 1h0m0s"},
	{"version", "maybe", `invalid boolean value "maybe" for -version: parse error`},
}

func usageError(t *testing.T, env map[string]string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := process{
		args:   args,
		getenv: func(name string) string { return env[name] },
		stdout: &stdout,
		stderr: &stderr,
	}.run()
	text, hint := strings.CutSuffix(stderr.String(), "\nstorefront -h shows the flags\n")
	if code != 2 || !hint || stdout.Len() > 0 {
		t.Errorf("%q %v: exit %d, stdout %q, stderr %q, want 2 and an error", args, env, code, &stdout, &stderr)
	}
	return text
}

func TestBadFlagsExitWithTwoAndNameTheFlag(t *testing.T) {
	tested := map[string]bool{}
	for _, tt := range bad {
		tested[tt.flag] = true
		if got := usageError(t, nil, "-"+tt.flag+"="+tt.value); got != tt.want {
			t.Errorf("-%s=%s:\ngot  %s\nwant %s", tt.flag, tt.value, got, tt.want)
		}
	}
	new(options).flags().VisitAll(func(f *flag.Flag) {
		if !tested[f.Name] {
			t.Errorf("-%s has no row", f.Name)
		}
	})
}

func TestBadEnvironmentExitsWithTwoAndNamesTheVariable(t *testing.T) {
	for _, tt := range bad {
		if tt.flag == "version" {
			continue // an action, no setting
		}
		name := variable(tt.flag)
		got := usageError(t, map[string]string{name: tt.value})
		want := tt.want
		if strings.HasPrefix(want, "invalid") {
			want = `invalid value "` + tt.value + `" for ` + name + ": "
		} else {
			want = strings.Replace(want, "-"+tt.flag, name, 1)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s=%s:\ngot  %s\nwant %s", name, tt.value, got, want)
		}
	}
}

func TestUnknownFlagsAndArgumentsExitWithTwo(t *testing.T) {
	for args, want := range map[string]string{
		"-nope":                  "flag provided but not defined: -nope",
		"serve":                  `unexpected argument "serve": every setting is a flag`,
		"-limit-burst":           "flag needs an argument: -limit-burst",
		"-limit-burst x -nope":   `invalid value "x" for flag -limit-burst: parse error`, // the first
		"-slow-work=-1s -addr=x": "-addr: \"x\" is not host:port\n-slow-work: -1s is out of range, 1ms to 1h0m0s",
	} {
		if got := usageError(t, nil, strings.Fields(args)...); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", args, got, want)
		}
	}
}

func TestFlagWinsOverEnvironmentWinsOverDefault(t *testing.T) {
	env := map[string]string{
		"STOREFRONT_LIMIT_BURST": "7",
		"STOREFRONT_SLOW_WORK":   "3s",
		"STOREFRONT_VERSION":     "1.2.3", // others set this for reasons of their own
	}
	opts, err := parse([]string{"-limit-burst", "5"}, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if c := opts.service; c.LimitBurst != 5 || c.SlowWork != 3*time.Second || c.SlowPermits != 2 || opts.version {
		t.Errorf("burst %d, work %v, permits %d, version %v, want 5, 3s, 2 and false", c.LimitBurst, c.SlowWork, c.SlowPermits, opts.version)
	}
	// What a flag overrides is not even read.
	env["STOREFRONT_LIMIT_BURST"] = "x"
	if _, err := parse([]string{"-limit-burst", "5"}, func(name string) string { return env[name] }); err != nil {
		t.Errorf("a variable that a flag overrides was read: %v", err)
	}
}
