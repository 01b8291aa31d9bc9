package storefront

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"example.com/storefront/internal/inturn"
	"example.com/storefront/internal/simulator"
)

// BenchmarkRoutes is what requests to the routes cost, with all that is counted and told,
// beside a bare net/http handler. Sixteen at once keep the server busy: one at a time, it is
// mostly the waiting for the next one that would be measured. The client does next to
// nothing, so that it does not dilute the ratios. Those that call a simulator make a second
// request over a socket, and are apart: in turn with them, the others meet cold caches.
func BenchmarkRoutes(b *testing.B) {
	const plenty = 1_000_000
	s, err := newService(Config{LimitBurst: plenty, LimitRate: plenty, SlowWork: time.Millisecond, SlowPermits: 16, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.simulated[flaky].Set(simulator.Fault{Script: "S"}); err != nil {
		b.Fatal(err)
	}
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }
	post := fmt.Sprintf("POST /charge HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(mug), mug)
	b.Run("answering", func(b *testing.B) {
		inturn.CPU(b,
			asked(b, "bare", bare, get("/limited"), "\nok"),
			asked(b, "limited", s, get("/limited"), "\nok"),
			asked(b, "flaky", s, get("/flaky"), "}"),
		)
	})
	b.Run("calling", func(b *testing.B) {
		inturn.CPU(b,
			asked(b, "bare", bare, get("/limited"), "\nok"),
			asked(b, "checkout", s, get("/checkout"), "}"),
			asked(b, "stock", s, get("/stock/mug"), "12}"),
			asked(b, "profile", s, get("/profile/ada"), "}"),
			asked(b, "charge", s, post, "}"),
			asked(b, "slow", s, get("/slow"), "\ndone"), // last: who comes after an idle time pays for it
		)
	})
}

// asked sends h a request on each of 16 connections at once. The answers, and nothing before
// their ends, must end so.
func asked(b *testing.B, name string, h http.Handler, request, end string) inturn.Way {
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	conns := make([]net.Conn, 16)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", server.Listener.Addr().String()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conns[i].Close() })
	}
	buf := make([]byte, 4096)
	return inturn.Way{Name: name, Call: func() error {
		for _, conn := range conns {
			if _, err := conn.Write([]byte(request)); err != nil {
				return err
			}
		}
		for _, conn := range conns {
			got := 0
			for !bytes.HasSuffix(buf[:got], []byte(end)) {
				more, err := conn.Read(buf[got:])
				if got += more; err != nil {
					return fmt.Errorf("%w after %q", err, buf[:got])
				}
			}
			if !bytes.HasPrefix(buf, []byte("HTTP/1.1 200 ")) {
				return fmt.Errorf("answered %q", buf[:got])
			}
		}
		return nil
	}}
}
