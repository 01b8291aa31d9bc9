// Package memnet is a network in memory for tests under a fake clock, where
// real sockets cannot be used: testing/synctest moves time only while every
// goroutine waits for another, and a socket's waits for the kernel.
package memnet

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Network connects listeners and dialers by address. Its zero value is ready.
// "localhost" is another name of 127.0.0.1.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener // guarded by mu
	lastPort  int                  // guarded by mu
}

// Listen is like net.Listen: port 0 gets a free one, and an address in use is
// refused with EADDRINUSE.
func (n *Network) Listen(network, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(canonical(address))
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if host == "" {
		host = "::"
	}
	if port == "0" {
		n.lastPort++ // from 49152, as RFC 6335 has dynamic ports
		port = strconv.Itoa(49151 + n.lastPort)
	}
	l := &listener{
		addr:   addr{n, net.JoinHostPort(host, port)},
		queue:  make(chan net.Conn),
		closed: make(chan struct{}),
	}
	if n.listeners[l.addr.address] != nil {
		return nil, opError("listen", l.addr, os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	n.listeners[l.addr.address] = l
	return l, nil
}

// DialContext is like net.Dialer's: nobody listening is ECONNREFUSED.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to := addr{n, canonical(address)}
	n.mu.Lock()
	l := n.listeners[to.address]
	n.mu.Unlock()
	refused := opError("dial", to, os.NewSyscallError("connect", syscall.ECONNREFUSED))
	if l == nil {
		return nil, refused
	}
	client, server := net.Pipe()
	select {
	case l.queue <- conn{server, to}:
		return conn{client, to}, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, opError("dial", to, ctx.Err())
	}
}

// Addr is an address of the network, whether somebody listens there or not.
func (n *Network) Addr(address string) net.Addr { return addr{n, canonical(address)} }

func opError(op string, a addr, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: a, Err: err}
}

func canonical(address string) string {
	if port, ok := strings.CutPrefix(address, "localhost:"); ok {
		return "127.0.0.1:" + port
	}
	return address
}

// addr can dial: whoever accepted a connection can so call back into the
// network that it came from.
type addr struct {
	home    *Network
	address string
}

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return a.address }

func (a addr) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return a.home.DialContext(ctx, network, address)
}

// conn has the listener's address at both ends: a server needs it to dial back,
// and nobody needs the client's.
type conn struct {
	net.Conn
	server addr
}

func (c conn) LocalAddr() net.Addr  { return c.server }
func (c conn) RemoteAddr() net.Addr { return c.server }

type listener struct {
	addr   addr
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", l.addr, net.ErrClosed)
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.addr.home.mu.Lock()
		defer l.addr.home.mu.Unlock()
		delete(l.addr.home.listeners, l.addr.address)
	})
	return nil
}
