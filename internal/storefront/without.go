package storefront

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"example.com/storefront/internal/dependency"
)

// without reads the layers that ?without= leaves out, a list or several. That is a
// control.
func (s *service) without(r *http.Request) (without dependency.Without, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case err != nil && strings.Contains(r.URL.RawQuery, "without"): // else what is malformed is none of ours
		return without, badRequest("the query: " + err.Error())
	case !query.Has("without"):
		return without, nil
	}
	if err := s.mayControl(r); err != nil {
		return without, err
	}
	return parseWithout(query["without"])
}

// parseWithout reads names of layers, with commas between them.
func parseWithout(lists []string) (without dependency.Without, err error) {
	for name := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		switch name {
		case "bulkhead":
			without.Bulkhead = true
		case "breaker":
			without.Breaker = true
		case "retry":
			without.Retry = true
		case "timeout":
			without.Timeout = true
		default:
			return without, badRequest(fmt.Sprintf("without: %.40q is not bulkhead, breaker, retry or timeout; commas separate several", name))
		}
	}
	return without, nil
}
