package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"text/tabwriter"

	"example.com/storefront/internal/storefront"
)

// options is what the flags and the environment say.
type options struct {
	service   storefront.Config
	addr      string
	logLevel  string
	logFormat string
	version   bool
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("storefront", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints errors and help
	fs.StringVar(&o.addr, "addr", "127.0.0.1:3000", "listen `address`, host:port; port 0 takes a free one")
	fs.StringVar(&o.logLevel, "log-level", "info", "lowest `level` that is logged: debug, info, warn or error")
	fs.StringVar(&o.logFormat, "log-format", "text", "`format` of the log, on stderr: text or json")
	fs.BoolVar(&o.version, "version", false, "print the version and exit")
	o.service.Flags(fs)
	return fs
}

// parse reads the flags, then the environment for those not given. The error is
// flag.ErrHelp, the first value that does not parse, or all values out of range.
func parse(args []string, getenv func(string) string) (options, error) {
	var o options
	fs := o.flags()
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: every setting is a flag", fs.Arg(0))
	}
	given := map[string]bool{"version": true} // an action, no setting
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	var renames []string // where a value came from the environment, errors say so
	fs.VisitAll(func(f *flag.Flag) {
		value := getenv(variable(f.Name))
		if given[f.Name] || value == "" || err != nil {
			return
		}
		renames = append(renames, "-"+f.Name+": ", variable(f.Name)+": ")
		if bad := fs.Set(f.Name, value); bad != nil {
			err = fmt.Errorf("invalid value %q for %s: %v", value, variable(f.Name), bad)
		}
	})
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return o, errors.New(strings.NewReplacer(renames...).Replace(err.Error()))
	}
	return o, nil
}

func (o *options) validate() error {
	var errs []error
	if _, port, err := net.SplitHostPort(o.addr); err != nil {
		errs = append(errs, fmt.Errorf("-addr: %q is not host:port", o.addr))
	} else if _, err := net.LookupPort("tcp", port); err != nil {
		errs = append(errs, fmt.Errorf("-addr: %q is not a port", port))
	}
	if new(slog.Level).UnmarshalText([]byte(o.logLevel)) != nil {
		errs = append(errs, fmt.Errorf("-log-level: %q is not debug, info, warn or error", o.logLevel))
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		errs = append(errs, fmt.Errorf("-log-format: %q is not text or json", o.logFormat))
	}
	return errors.Join(append(errs, o.service.Validate())...)
}

// variable is a flag's name in the environment.
func variable(name string) string {
	return "STOREFRONT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// groups orders the help by pattern: each flag belongs to the first group that
// has a prefix of its name.
var groups = []struct {
	title    string
	prefixes []string
}{
	{"Server", []string{"addr", "controls", "drain-", "log-", "version"}},
	{"Timeout, of /checkout", []string{"flaky-", "checkout-", "attempt-"}},
	{"Retry, of /checkout", []string{"retry-"}},
	{"Circuit breaker, of /checkout", []string{"breaker-"}},
	{"Bulkhead, of /checkout", []string{"bulkhead"}},
	{"Rate limit", []string{"limit-", "caller-", "redis"}},
	{"Load shedding", []string{"slow-", "max-in-flight"}},
}

func usage(w io.Writer) {
	fmt.Fprint(w, `Storefront shows resilience patterns for calls between services, live.

Usage: storefront [flags]

Each flag but -version can be set in the environment too: -limit-burst is
STOREFRONT_LIMIT_BURST. The flag wins; an empty variable counts as unset.
`)
	var o options
	fs := o.flags()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for i, g := range groups {
		fmt.Fprintf(table, "\n%s\n", g.title)
		fs.VisitAll(func(f *flag.Flag) {
			if group(f.Name) != i {
				return
			}
			value, text := flag.UnquoteUsage(f)
			if f.DefValue != "" && f.DefValue != "false" {
				text += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(table, "  -%s %s\t%s\n", f.Name, value, text)
		})
	}
}

// group is the index in groups of a flag, -1 if it has none.
func group(name string) int {
	for i, g := range groups {
		for _, prefix := range g.prefixes {
			if strings.HasPrefix(name, prefix) {
				return i
			}
		}
	}
	return -1
}
