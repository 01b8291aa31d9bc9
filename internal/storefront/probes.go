package storefront

import "net/http"

// healthz says that the process lives.
func healthz(w http.ResponseWriter, _ *http.Request) error {
	return write(w, textType, "ok")
}

// readyz says whether new work is welcome.
func (s *service) readyz(w http.ResponseWriter, _ *http.Request) error {
	if s.drain.begun() {
		return errDraining
	}
	return write(w, textType, "ready")
}
