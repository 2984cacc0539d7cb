package guarded

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/webhook"
)

// victim is a listener on loopback that nobody may reach.
func victim(t *testing.T) (port string, reached *atomic.Int64) {
	t.Helper()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	reached = &atomic.Int64{}
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			reached.Add(1)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, reached
}

// The guard stands at the socket itself: even an address that no check has seen is not dialled.
func TestTheGuardAtTheSocket(t *testing.T) {
	var d Dialer
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"} {
		port, reached := victim(t)
		conn, err := d.dial(t.Context(), net.JoinHostPort(host, port))
		if !errors.Is(err, ErrNotAllowed) || reached.Load() != 0 {
			t.Errorf("%s: %v, %v, %d connections", host, conn, err, reached.Load())
		}
	}
	for _, address := range []string{"", "x", "10.0.0.1:80", "[fe80::1%eth0]:80", "169.254.169.254:80", "name:80", "8.8.8.8"} {
		if err := d.guard("tcp", address, nil); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"8.8.8.8:443", "[2606:4700::1111]:443"} {
		check.NoError(t, d.guard("tcp", address, nil), address)
	}
}

func TestAddressesOfTheOperatorAreNotDialled(t *testing.T) {
	own := netip.MustParsePrefix("127.0.0.0/8")
	d := Dialer{Policy: webhook.Policy{AllowPrivate: true, Refused: []netip.Prefix{own}}}
	port, reached := victim(t)
	conn, err := d.Dial(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")}, port)
	if !errors.Is(err, ErrNotAllowed) || reached.Load() != 0 {
		t.Errorf("%v, %v", conn, err)
	}
	if conn, err := d.Dial(t.Context(), nil, port); err == nil {
		t.Errorf("without an address: %v", conn)
	}
}
