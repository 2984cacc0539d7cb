package webhooksender

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
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
