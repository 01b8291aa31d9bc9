package storefront

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Controls says who may break things: set faults, reset, leave out layers.
type Controls string

// The zero value means ControlsAuto.
const (
	// ControlsAuto is everybody on this machine: on when the service listens on
	// a loopback address, for requests whose Host is an IP address or localhost.
	// Any other name may be one that a web page had resolve to this machine (DNS
	// rebinding).
	ControlsAuto Controls = "auto"
	ControlsOn   Controls = "on"  // everybody
	ControlsOff  Controls = "off" // nobody
)

var (
	errControls    = errors.New("controls are off")
	errControlsOff = fmt.Errorf("%w, by -controls off", errControls)
	errNotLoopback = fmt.Errorf("%w, as other machines can reach this server; -controls on allows them", errControls)
	errForeignHost = errors.New("controls are for requests to localhost or an IP address")
	errCrossOrigin = errors.New("a web page of another origin may not do this")
)

// controlled refuses requests that may not control.
func (s *service) controlled(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.mayControl(r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// mayControl is nil if r may control, else why not.
func (s *service) mayControl(r *http.Request) error {
	switch s.cfg.Controls {
	case ControlsOn:
		return nil
	case ControlsOff:
		return errControlsOff
	}
	address := s.address
	if address == nil { // under New the best there is: where the request came in
		address, _ = r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	}
	switch {
	case !isLoopback(address):
		return errNotLoopback
	case !isLocalHost(r.Host):
		return errForeignHost
	}
	return nil
}

func isLoopback(address net.Addr) bool {
	if address == nil {
		return false
	}
	addr, err := netip.ParseAddrPort(address.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// isLocalHost takes a Host header, with or without a port.
func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

// refuseCrossOrigin refuses what changes something and comes from a page of another
// origin, on every route.
func (s *service) refuseCrossOrigin(next http.Handler) http.Handler {
	var protection http.CrossOriginProtection
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if protection.Check(r) != nil {
			return errCrossOrigin
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
