package storefront

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
)

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// methodNotAllowed sets Allow, which chi leaves out, by asking it for each
// method. chi also sends unknown methods here, for any path.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	var allow []string
	for _, method := range methods {
		if routeFor(r, method) != "" {
			allow = append(allow, method)
		}
	}
	if len(allow) == 0 {
		return errNotFound
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	others := slices.DeleteFunc(allow, func(method string) bool { return method == http.MethodHead }) // which nobody means
	return fmt.Errorf("%w; try %s", errMethod, strings.Join(others, " or "))
}

// knownRoute is the pattern of the route at r's path, whatever the method of r, empty
// if there is none.
func knownRoute(r *http.Request) string {
	for _, method := range methods {
		if route := routeFor(r, method); route != "" {
			return route
		}
	}
	return ""
}

// patterns has those of all routes.
func patterns(routes chi.Routes) []string {
	var all []string
	// Walk returns what the function does: no error.
	_ = chi.Walk(routes, func(_, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, pattern)
		return nil
	})
	return all
}

// decodePath makes chi match what routePath returns.
func decodePath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).RoutePath = routePath(r)
		next.ServeHTTP(w, r)
	})
}

// routePath is the decoded path: to chi, /%73low is another route than /slow, which
// it is not (RFC 3986, §6.2.2.2). An encoded slash is no slash, and stays encoded
// with all the rest.
func routePath(r *http.Request) string {
	if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// routeFor is the pattern of the route that r would take with this method, empty
// if there is none.
func routeFor(r *http.Request, method string) string {
	if method == http.MethodHead {
		method = http.MethodGet // middleware.GetHead
	}
	return chi.RouteContext(r.Context()).Routes.Find(chi.NewRouteContext(), method, routePath(r))
}
