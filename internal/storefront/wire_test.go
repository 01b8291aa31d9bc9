package storefront_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"example.com/storefront/internal/storefront"
)

// exchange sends one request over a socket of its own, and returns all that came
// back before it ended, and how it ended: nil is an ordinary end.
func exchange(t *testing.T, url, method, path, body string) (answer string, end error) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	return string(all), err
}

// R resets the connection on the wire, L loses the reply after the work was done.
func TestAbortedConnectionsOnTheWire(t *testing.T) {
	url := serve(t, storefront.Config{})
	const charge = `{"amount":1250,"token":"tok_visa"}`
	for _, tt := range []struct{ dependency, method, path, body string }{
		{"flaky", "GET", "/flaky", ""},
		{"inventory", "GET", "/upstream/inventory/stock/mug", ""},
		{"payments", "POST", "/upstream/payments/charge", charge},
		{"profiles", "GET", "/upstream/profiles/ada", ""},
	} {
		if got, _ := exchange(t, url, "PUT", "/faults/"+tt.dependency, "script=RL"); !strings.HasPrefix(got, "HTTP/1.1 200") {
			t.Fatal(got)
		}
		if got, end := exchange(t, url, tt.method, tt.path, tt.body); got != "" || !errors.Is(end, syscall.ECONNRESET) {
			t.Errorf("%s, R: got %q, %v, want nothing and a reset", tt.dependency, got, end)
		}
		if got, end := exchange(t, url, tt.method, tt.path, tt.body); got != "" || end != nil {
			t.Errorf("%s, L: got %q, %v, want nothing and an end", tt.dependency, got, end)
		}
	}
	if _, ledger := get(t.Context(), t, url+"/upstream/payments/charges", ""); ledger != `[{"charge_id":"ch_1","amount":1250}]` {
		t.Errorf("charged %s, want the one whose reply was lost", ledger)
	}
	if _, faults := get(t.Context(), t, url+"/faults/flaky", ""); faults != `{"script":"RL","next":0,"status":503}` {
		t.Errorf("%s, want a script at its end", faults)
	}
}

// The address that counts is the listener's: a request may well come in over
// loopback where the whole network may.
func TestControlsAreOffWhereTheNetworkCanReachThem(t *testing.T) {
	for listen, want := range map[string]int{":0": 403, "0.0.0.0:0": 403, "127.0.0.1:0": 200} {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- storefront.Serve(ctx, ln, storefront.Config{Log: slog.New(slog.DiscardHandler)}) }()
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post("http://127.0.0.1:"+port+"/reset", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("listening on %s: %d, want %d", listen, resp.StatusCode, want)
		}
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
