package storefront

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"

	"example.com/storefront/internal/simulator"
)

var errUnknownDependency = errors.New("unknown dependency; try flaky, inventory, payments or profiles")

// faults answers the fault in force of each dependency.
func (s *service) faults(w http.ResponseWriter, _ *http.Request) error {
	all := map[string]simulator.Setting{}
	for name, d := range s.simulated {
		all[name] = d.Setting()
	}
	return encode(w, all)
}

// simulatorOf is the dependency that the path names.
func (s *service) simulatorOf(r *http.Request) (name string, d *simulator.Dependency, err error) {
	name = r.PathValue("dependency")
	d, ok := s.simulated[name]
	if !ok {
		return name, nil, errUnknownDependency
	}
	return name, d, nil
}

// fault answers the fault in force of one.
func (s *service) fault(w http.ResponseWriter, r *http.Request) error {
	_, d, err := s.simulatorOf(r)
	if err != nil {
		return err
	}
	return encode(w, d.Setting())
}

// setFault replaces it, and answers the new one.
func (s *service) setFault(w http.ResponseWriter, r *http.Request) error {
	name, d, err := s.simulatorOf(r)
	if err != nil {
		return err
	}
	form, err := formOf(r)
	if err != nil {
		return err
	}
	fault, err := simulator.ParseFault(form)
	if err != nil {
		return badRequest(err.Error())
	}
	setting, err := d.Set(fault)
	if err != nil {
		return badRequest(err.Error())
	}
	s.log.Info("fault set", "dependency", name, "script", setting.Script, "status", setting.Status, "latency", fault.Latency, "retry_after", fault.RetryAfter)
	return encode(w, setting)
}

// formOf reads the fields of a body, which may be empty. In a query they are refused,
// or they would be ignored in silence.
func formOf(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery != "" {
		return nil, badRequest("the query: must be empty; the fields go into the body, as curl -d script=F has them")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	// To curl -d, JSON is a form as well.
	if len(body) > 0 && (err != nil || kind != "application/x-www-form-urlencoded" || body[0] == '{') {
		return nil, badRequest("the body: must be a form, application/x-www-form-urlencoded, as curl -d script=F sends it")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, badRequest("the body: " + err.Error())
	}
	return form, nil
}

// resetFault makes a dependency as it was at the start, its counts and its state
// included.
func (s *service) resetFault(w http.ResponseWriter, r *http.Request) error {
	name, d, err := s.simulatorOf(r)
	if err != nil {
		return err
	}
	setting := d.Reset()
	s.log.Info("fault reset", "dependency", name)
	return encode(w, setting)
}

// resetFaults does so with all of them.
func (s *service) resetFaults(w http.ResponseWriter, r *http.Request) error {
	for _, d := range s.simulated {
		d.Reset()
	}
	s.log.Info("faults reset")
	return s.faults(w, r)
}
