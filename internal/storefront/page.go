package storefront

import (
	"net/http"

	"example.com/storefront/internal/console"
)

// page answers the live page and its files. It may be seen by everybody: what it shows
// comes from /events.
func page(w http.ResponseWriter, r *http.Request) error {
	if !console.Serve(w, r.PathValue("file")) {
		return errNotFound
	}
	return nil
}
