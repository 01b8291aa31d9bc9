package storefront

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkLimited is what requests to /limited cost, with all that is counted and
// told, beside a bare net/http handler that answers the same: one at a time, and 16 at
// once, which keeps the server busy. The client does next to nothing, so that it does
// not dilute the ratio.
func BenchmarkLimited(b *testing.B) {
	s, err := newService(Config{LimitBurst: 1_000_000, LimitRate: 1_000_000, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint(n, "-at-once"), func(b *testing.B) {
			inTurn(b, way{"bare", served(b, bare, n)}, way{"limited", served(b, s, n)})
		})
	}
}

// served asks h for /limited over n connections at once. The answers must end with
// "ok".
func served(b *testing.B, h http.Handler, n int) func() error {
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	conns := make([]net.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", server.Listener.Addr().String()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conns[i].Close() })
	}
	request, buf := []byte("GET /limited HTTP/1.1\r\nHost: localhost\r\n\r\n"), make([]byte, 4096)
	return func() error {
		for _, conn := range conns {
			if _, err := conn.Write(request); err != nil {
				return err
			}
		}
		for _, conn := range conns {
			for got := 0; !bytes.HasSuffix(buf[:got], []byte("\r\n\r\nok")); {
				more, err := conn.Read(buf[got:])
				if got += more; err != nil {
					return fmt.Errorf("%w after %q", err, buf[:got])
				}
			}
		}
		return nil
	}
}
