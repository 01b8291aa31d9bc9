package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// ParseFault reads a Fault from the fields script, status, latency and retry_after of
// a form. One that is not given is the default. As status and retry_after need a
// failure to go with, they imply the script F. The error names the field that is wrong.
func ParseFault(form url.Values) (Fault, error) {
	var f Fault
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if err := f.parse(name, form[name]); err != nil {
			return Fault{}, err
		}
	}
	if f.Status != 0 || f.RetryAfter != "" {
		f.Script = cmp.Or(f.Script, string(fail))
	}
	return f, nil
}

// parse leaves the ranges to withDefaults, which would take a 0 or nothing for a
// default.
func (f *Fault) parse(name string, values []string) (err error) {
	value := values[0]
	switch name {
	case "script":
		f.Script = value
	case "status":
		if f.Status, err = strconv.Atoi(value); err != nil || f.Status == 0 {
			return errStatus
		}
	case "latency":
		if f.Latency, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("latency: %s is not a duration like 250ms or 2s", quoted(value))
		}
	case "retry_after":
		f.RetryAfter = value
	default:
		return fmt.Errorf("%s: unknown field; try script, status, latency or retry_after", quoted(name))
	}
	switch {
	case len(values) > 1:
		return fmt.Errorf("%s: given twice", name)
	case value == "":
		return fmt.Errorf("%s: must not be empty", name)
	}
	return nil
}

// Setting is the fault in force.
type Setting struct {
	Script     string `json:"script"`
	Next       int    `json:"next"` // the letter of the next call, from 0
	Status     int    `json:"status"`
	Latency    string `json:"latency,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"`
}

// Setting returns the fault in force, and where its script stands.
func (d *Dependency) Setting() Setting {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Setting{
		Script: d.fault.Script, Next: d.calls % len(d.fault.Script),
		Status: d.fault.Status, RetryAfter: d.fault.RetryAfter,
	}
	if d.fault.Latency > 0 {
		s.Latency = d.fault.Latency.String()
	}
	return s
}
