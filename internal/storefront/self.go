package storefront

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
)

var errNoAddress = errors.New("the handler does not know its own address: serve it with http.Server or httptest.NewServer")

// ownURL is the URL of a path of this very service, at the address on which the
// request of ctx came in. The address is the listener's, never the client's
// Host header.
func ownURL(ctx context.Context, path string) (string, error) {
	local, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "", errNoAddress
	}
	u := url.URL{Scheme: "http", Host: local.String(), Path: path}
	return u.String(), nil
}

// dial opens a connection over the network that the request of ctx came in on:
// an address that can dial, as memnet's can, does it itself.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if local, ok := ctx.Value(http.LocalAddrContextKey).(dialer); ok {
		return local.DialContext(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}
