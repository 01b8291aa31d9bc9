package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func listen(t *testing.T, n *Network, address string) net.Listener {
	t.Helper()
	ln, err := n.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func TestHTTPUnderAFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			io.WriteString(w, r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		})}
		go srv.Serve(listen(t, &n, "127.0.0.1:3000"))
		defer srv.Close()
		transport := &http.Transport{DialContext: n.DialContext}
		defer transport.CloseIdleConnections()

		start := time.Now()
		resp, err := (&http.Client{Transport: transport}).Get("http://localhost:3000/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || string(body) != "127.0.0.1:3000" || time.Since(start) != time.Hour {
			t.Errorf("%q, %v after %v", body, err, time.Since(start))
		}
	})
}

func TestAnAcceptedAddressDialsBack(t *testing.T) {
	var n Network
	ln := listen(t, &n, "127.0.0.1:0")
	go n.DialContext(t.Context(), "tcp", ln.Addr().String())
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	back := accepted.LocalAddr().(interface {
		DialContext(context.Context, string, string) (net.Conn, error)
	})
	go back.DialContext(t.Context(), "tcp", accepted.LocalAddr().String())
	if _, err := ln.Accept(); err != nil {
		t.Error(err)
	}
}

func TestErrorsAreThoseOfARealNetwork(t *testing.T) {
	var n Network
	if _, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) ||
		err.Error() != "dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Errorf("nobody listens: %v", err)
	}
	ln := listen(t, &n, "127.0.0.1:1")
	if _, err := n.Listen("tcp", "localhost:1"); !errors.Is(err, syscall.EADDRINUSE) ||
		err.Error() != "listen tcp 127.0.0.1:1: bind: address already in use" {
		t.Errorf("in use: %v", err)
	}
	if _, err := n.Listen("tcp", "nonsense"); err == nil {
		t.Error("an address without a port is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.DialContext(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while nobody accepts: %v", err)
	}
	ln.Close()
	ln.Close()
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept on a closed listener: %v", err)
	}
	if _, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("closed: %v", err)
	}
	listen(t, &n, "127.0.0.1:1")
}

func TestClosingRefusesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		ln := listen(t, &n, "127.0.0.1:1")
		dialed := make(chan error, 1)
		go func() {
			_, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:1")
			dialed <- err
		}()
		synctest.Wait()
		ln.Close()
		if err := <-dialed; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want refused", err)
		}
	})
}

func TestPortZeroIsAFreeOne(t *testing.T) {
	var n Network
	a, b := listen(t, &n, "127.0.0.1:0"), listen(t, &n, "127.0.0.1:0")
	if a.Addr().String() == b.Addr().String() {
		t.Errorf("both on %v", a.Addr())
	}
}
