package webhooksender

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/webhook"
)

// victim is a listener on loopback that nobody may reach.
func victim(t *testing.T, at string) (port string, reached *atomic.Int64) {
	t.Helper()
	listener := check.Must(net.Listen("tcp", at))(t)
	t.Cleanup(func() { listener.Close() })
	reached = &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port, reached
}

// A name that is public when the endpoint is made, and private when it is delivered to.
func TestARebindingNameGetsNoConnection(t *testing.T) {
	for _, private := range [][]netip.Addr{
		addresses("127.0.0.1"), addresses("::1"), addresses("::ffff:127.0.0.1"), addresses("8.8.8.8", "127.0.0.1"),
		addresses("127.0.0.1", "8.8.8.8"), addresses("64:ff9b::7f00:1"), addresses("fe80::1%lo"), addresses("0.0.0.0"),
	} {
		port, reached := victim(t, "localhost:0")
		resolver := &names{answers: map[string][][]netip.Addr{"rebind.example.com.": {addresses("8.8.8.8"), private}}}
		s := newSender(t, Options{Resolver: resolver, Timeout: 2 * time.Second})
		url := "https://rebind.example.com:" + port + "/"
		check.Must(s.Check(t.Context(), url))(t)
		for range 3 {
			o := sendTo(t, s, url)
			if o.StatusCode != 0 || o.Error != "the URL cannot be used: its host name resolves to an address that is not public" {
				t.Errorf("%v: %+v", private, o)
			}
		}
		if _, err := s.Check(t.Context(), url); !fault.Has(err, fault.InvalidWebhookEndpoint) {
			t.Errorf("%v: %v", private, err)
		}
		if n := reached.Load(); n != 0 {
			t.Errorf("%v: %d connections", private, n)
		}
	}
}

// The guard stands at the socket itself: even an address that no check has seen is not dialled.
func TestTheGuardAtTheSocket(t *testing.T) {
	s := newSender(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"} {
		port, reached := victim(t, "127.0.0.1:0")
		conn, err := s.dial(t.Context(), net.JoinHostPort(host, port))
		if !errors.Is(err, errNotAllowed) || reached.Load() != 0 {
			t.Errorf("%s: %v, %v, %d connections", host, conn, err, reached.Load())
		}
	}
	for _, address := range []string{"", "x", "10.0.0.1:80", "[fe80::1%eth0]:80", "169.254.169.254:80", "name:80", "8.8.8.8"} {
		if err := s.guard("tcp", address, nil); !errors.Is(err, errNotAllowed) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"8.8.8.8:443", "[2606:4700::1111]:443"} {
		check.NoError(t, s.guard("tcp", address, nil), address)
	}
}

func TestAddressesOfTheOperatorAreNotDialled(t *testing.T) {
	own := netip.MustParsePrefix("127.0.0.0/8")
	s := newSender(t, Options{Policy: webhook.Policy{AllowPrivate: true, Refused: []netip.Prefix{own}}})
	port, reached := victim(t, "127.0.0.1:0")
	if conn, err := s.dial(t.Context(), "127.0.0.1:"+port); !errors.Is(err, errNotAllowed) || reached.Load() != 0 {
		t.Errorf("%v, %v", conn, err)
	}
}

// Some resolvers write every IPv4 address in IPv6 form; that alone makes no address private, and no private one public.
func TestIPv4InIPv6Form(t *testing.T) {
	s := newSender(t, Options{Resolver: &names{answers: map[string][][]netip.Addr{
		"public.example.com.": {addresses("::ffff:8.8.8.8")}, "private.example.com.": {addresses("::ffff:10.0.0.1")},
	}}})
	if _, err := s.Check(t.Context(), "https://public.example.com/"); err != nil {
		t.Error(err)
	}
	if _, err := s.Check(t.Context(), "https://private.example.com/"); !fault.Has(err, fault.InvalidWebhookEndpoint) {
		t.Error(err)
	}
}

// Names are looked up as full ones, so that "metadata.google" never becomes "metadata.google.internal".
func TestNamesAreFullOnes(t *testing.T) {
	resolver := &names{answers: map[string][][]netip.Addr{"metadata.google": {addresses("8.8.8.8")}}}
	s := newSender(t, Options{Resolver: resolver})
	if o := sendTo(t, s, "https://metadata.google/"); o.Error != "the host name does not resolve" {
		t.Errorf("%+v", o)
	}
	if slices.ContainsFunc(resolver.asked, func(name string) bool { return !strings.HasSuffix(name, ".") }) {
		t.Errorf("asked for %v", resolver.asked)
	}
}
