package storefront

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

func notFound(http.ResponseWriter, *http.Request) error { return errNotFound }

// methodNotAllowed sets Allow, which chi leaves out, by asking it for each
// method. chi also sends unknown methods here, for any path.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	rctx := chi.RouteContext(r.Context())
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var allow []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		asked := method
		if method == "HEAD" {
			asked = "GET" // middleware.GetHead
		}
		if rctx.Routes.Match(chi.NewRouteContext(), asked, path) {
			allow = append(allow, method)
		}
	}
	if len(allow) == 0 {
		return errNotFound
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	return errMethod
}
