package guarded

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/webhook"
)

// names answers look-ups; a name that it does not have does not exist or, while nothing answers, fails.
type names map[string][]netip.Addr

func (n names) away() bool { return n["away"] != nil }

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if found := n[strings.TrimSuffix(host, ".")]; len(found) > 0 && !n.away() {
		return found, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: !n.away()}
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestOwnHostsFollowTheServers(t *testing.T) {
	now, dns := time.Unix(0, 0), names{"agent.example": addresses("198.41.0.4", "::ffff:198.41.0.5")}
	hosts := []string{"agent.example", "2606:4700::1", "agent.example"}
	own := &Own{
		Resolver: dns, Now: func() time.Time { return now },
		Hosts: func(context.Context) ([]string, error) { return append([]string(nil), hosts...), nil },
	}
	has := func(when string, want string) {
		t.Helper()
		var got []string
		for _, a := range addresses("198.41.0.4", "198.41.0.5", "::ffff:198.41.0.4", "2606:4700::1", "198.41.0.9") {
			if own.Has(a) {
				got = append(got, a.String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", when, got, want)
		}
	}
	has("before the first look", "")
	check.NoError(t, own.Refresh(t.Context()))
	has("after it", "198.41.0.4 198.41.0.5 ::ffff:198.41.0.4 2606:4700::1")

	dns["agent.example"] = addresses("198.41.0.9")
	check.NoError(t, own.Refresh(t.Context()))
	has("with another answer", "198.41.0.4 198.41.0.5 ::ffff:198.41.0.4 2606:4700::1 198.41.0.9")
	now = now.Add(addressKept + time.Second)
	check.NoError(t, own.Refresh(t.Context()))
	has("long after it", "2606:4700::1 198.41.0.9")

	delete(dns, "agent.example")
	now = now.Add(24 * time.Hour)
	if err := own.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "agent.example") {
		t.Errorf("a host without an address: %v", err)
	}
	has("while it cannot be looked up", "2606:4700::1 198.41.0.9")
	hosts = hosts[1:2]
	check.NoError(t, own.Refresh(t.Context()))
	has("when the server is gone", "2606:4700::1")
}

// Until each host was found once, nothing is dialled; afterwards look-ups and lists may fail.
func TestNothingIsDialledUntilOwnHostsAreKnown(t *testing.T) {
	dns := names{"agent.example": addresses("198.41.0.4"), "metadata.example": addresses("198.41.0.5")}
	hosts, unlisted := []string{"metadata.example"}, errors.New("the list fails")
	now := time.Unix(0, 0)
	own := &Own{
		Resolver: dns, Now: func() time.Time { return now },
		Hosts: func(context.Context) ([]string, error) { return append([]string(nil), hosts...), unlisted },
	}
	d := Dialer{Resolver: dns, Policy: webhook.Policy{Own: own.Has, OwnKnown: own.Known}}
	elsewhere := webhook.Target{Address: netip.MustParseAddr("198.41.0.9")}
	expect := func(when string, known bool, has string) {
		t.Helper()
		var got []string
		for _, a := range addresses("198.41.0.4", "198.41.0.5") {
			if own.Has(a) {
				got = append(got, a.String())
			}
		}
		_, err := d.Addresses(t.Context(), elsewhere)
		socket := d.guard("tcp", "198.41.0.9:443", nil)
		if own.Known() != known || errors.Is(err, webhook.ErrOwnUnknown) == known || errors.Is(socket, webhook.ErrOwnUnknown) == known {
			t.Errorf("%s: known %v, look-up: %v, socket: %v", when, own.Known(), err, socket)
		}
		if strings.Join(got, " ") != has {
			t.Errorf("%s: %v, want %s", when, got, has)
		}
	}
	refresh := func(when string, fine, known bool, has string) {
		t.Helper()
		if err := own.Refresh(t.Context()); (err == nil) != fine {
			t.Errorf("%s: %v", when, err)
		}
		expect(when, known, has)
	}
	complete := func(when string, want bool) {
		t.Helper()
		if own.Complete() != want {
			t.Errorf("%s: complete %v", when, !want)
		}
	}
	expect("before the first look", false, "")
	refresh("while the servers are not listed", false, false, "198.41.0.5")
	dns["away"] = addresses("::")
	hosts, unlisted = append(hosts, "agent.example"), nil
	refresh("while a server is not found", false, false, "198.41.0.5")
	now = now.Add(newAwaited)
	refresh("while a server is not found at a start, for long", false, false, "198.41.0.5")
	complete("at the start", false)
	delete(dns, "away")
	refresh("with all of them", true, true, "198.41.0.4 198.41.0.5")
	complete("with all of them", true)

	dns["away"] = addresses("::")
	refresh("while no name is found any more", false, true, "198.41.0.4 198.41.0.5")
	hosts, unlisted = hosts[:1], errors.New("the list fails")
	refresh("while the servers are not listed any more", false, true, "198.41.0.4 198.41.0.5")
	hosts, unlisted = []string{"metadata.example", "agent.example", "new.example"}, nil
	refresh("with a server that is not found", false, false, "198.41.0.4 198.41.0.5")
	now = now.Add(newAwaited - time.Second)
	refresh("with one that is not found for a while", false, false, "198.41.0.4 198.41.0.5")
	now = now.Add(time.Second)
	refresh("with one that is not found for long", false, true, "198.41.0.4 198.41.0.5")
	complete("with one that is not found for long", false)
	hosts = append(hosts, "newer.example")
	refresh("with a newer one", false, false, "198.41.0.4 198.41.0.5")
	hosts = hosts[:3]
	delete(dns, "away")
	refresh("with one whose name does not exist", false, true, "198.41.0.4 198.41.0.5")
	complete("with one whose name does not exist", true)
	dns["new.example"], dns["agent.example"] = dns["agent.example"], addresses("198.41.0.6")
	now = now.Add(addressKept + time.Second)
	refresh("with one that has an address later", true, true, "198.41.0.4 198.41.0.5")
}

// A name that begins to lead to an agent after its URL was checked gains nothing, and neither does the address itself.
func TestOwnHostsAreNotDialled(t *testing.T) {
	dns := names{"hook.example": addresses("198.41.0.9")}
	own := &Own{
		Resolver: dns, Now: time.Now, Hosts: func(context.Context) ([]string, error) { return []string{"198.41.0.4"}, nil },
	}
	check.NoError(t, own.Refresh(t.Context()))
	d := Dialer{Resolver: dns, Policy: webhook.Policy{
		Own: own.Has, Refused: []netip.Prefix{netip.MustParsePrefix("198.51.0.0/24")},
	}}
	target := check.Must(d.Policy.ParseURL("https://hook.example/x"))(t)
	check.Must(d.Addresses(t.Context(), target))(t)
	for _, at := range []string{"198.41.0.4", "198.51.0.7"} {
		dns["hook.example"] = addresses(at)
		if found, err := d.Addresses(t.Context(), target); err == nil {
			t.Errorf("%s: the name leads to %v", at, found)
		}
		if _, err := d.Dial(t.Context(), addresses(at), "443"); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: dialled: %v", at, err)
		}
		if _, err := d.Policy.ParseURL("https://" + at + "/x"); err == nil {
			t.Errorf("%s: it may stand in a URL", at)
		}
	}
}
