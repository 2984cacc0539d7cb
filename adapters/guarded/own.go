package guarded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// addressKept is how long an address of an own host counts after a look-up has last named it: answers rotate, and fail.
	addressKept = time.Hour
	// newAwaited is for how long a host that is listed later than others is waited for: somebody may have mistyped its name.
	newAwaited = 5 * time.Minute
	// lookUp bounds the look-up of one host, and lookUps how many are under way at a time.
	lookUp  = 3 * time.Second
	lookUps = 16
)

// Own is the addresses of an installation's own hosts, where nobody else may have a connection made to. It is safe for concurrent
// use.
type Own struct {
	// Hosts lists the hosts: names and addresses. It returns an error with those that it could list.
	Hosts    func(ctx context.Context) ([]string, error)
	Resolver Resolver // nil: the system's
	Now      func() time.Time

	mu     sync.Mutex // held while they are looked up
	listed bool       // all hosts were listed once
	hosts  map[string]ownHost
	known  atomic.Pointer[known]
}

// ownHost is what is known of a host.
type ownHost struct {
	since     time.Time // when it was first listed
	found     bool      // it was found once, or has no address
	addresses map[netip.Addr]time.Time
}

// known is what is known of all hosts.
type known struct {
	addresses map[netip.Addr]bool
	all       bool // every host was found
	once      bool // that has been so
	enough    bool // nothing is waited for
}

func (o *Own) now() known {
	if now := o.known.Load(); now != nil {
		return *now
	}
	return known{}
}

// Known reports whether connections may be made: every host that is listed was found. Once that has been so, a host that is new
// is waited for only for a while: the others shall not depend on it for good. A name that does not exist counts as found: it
// leads nobody anywhere.
func (o *Own) Known() bool { return o.now().enough }

// Complete reports whether every host that is listed was found. Until then Has may lack an address.
func (o *Own) Complete() bool { return o.now().all }

// Has reports whether an address is one of an own host, as far as Refresh has found.
func (o *Own) Has(a netip.Addr) bool { return o.now().addresses[plain(a)] }

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Refresh looks all hosts up. One that cannot be looked up keeps the addresses that it had, and is named in the error; one that
// is listed no more has none. If they cannot all be listed, those that were, now or before, are looked up.
func (o *Own) Refresh(ctx context.Context) error {
	names, unlisted := o.Hosts(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if unlisted != nil {
		names = slices.AppendSeq(names, maps.Keys(o.hosts))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	answers, err := o.lookUp(ctx, names)
	o.listed = o.listed || unlisted == nil
	now, hosts := o.Now(), map[string]ownHost{}
	is := known{addresses: map[netip.Addr]bool{}, all: o.listed, once: o.now().once, enough: o.listed}
	for _, name := range names {
		host, before := o.hosts[name]
		if !before {
			host.since = now
		}
		host.addresses = answers[name].merge(host.addresses, now)
		host.found = host.found || answers[name].ends()
		for a := range host.addresses {
			is.addresses[a] = true
		}
		is.all = is.all && host.found
		is.enough = is.enough && (host.found || is.once && now.Sub(host.since) >= newAwaited)
		hosts[name] = host
	}
	is.once = is.once || is.all
	o.hosts = hosts
	o.known.Store(&is)
	return errors.Join(unlisted, err)
}

// answer is that to a look-up of a host.
type answer struct {
	addresses []netip.Addr
	err       error
}

// ends reports whether the answer says all addresses of the host.
func (a answer) ends() bool {
	var refused *net.DNSError
	return len(a.addresses) > 0 || errors.As(a.err, &refused) && refused.IsNotFound
}

// merge returns the addresses of a host, with when each was last named: those of the answer, and what was known before.
func (a answer) merge(before map[netip.Addr]time.Time, now time.Time) map[netip.Addr]time.Time {
	all := map[netip.Addr]time.Time{}
	for address, last := range before {
		if len(a.addresses) == 0 || now.Sub(last) <= addressKept {
			all[address] = last
		}
	}
	for _, address := range a.addresses {
		all[plain(address)] = now
	}
	return all
}

// lookUp looks hosts up, several at a time.
func (o *Own) lookUp(ctx context.Context, hosts []string) (map[string]answer, error) {
	var resolver Resolver = net.DefaultResolver
	if o.Resolver != nil {
		resolver = o.Resolver
	}
	var mu sync.Mutex
	var failed []error
	answers, slots := map[string]answer{}, make(chan struct{}, lookUps)
	var running sync.WaitGroup
	for _, host := range hosts {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			limited, cancel := context.WithTimeout(ctx, lookUp)
			defer cancel()
			a, err := netip.ParseAddr(host)
			addresses := []netip.Addr{a}
			if err != nil {
				addresses, err = resolver.LookupNetIP(limited, "ip", host)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				addresses = nil
			}
			if answers[host] = (answer{addresses, err}); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", host, err))
			}
		})
	}
	running.Wait()
	return answers, errors.Join(failed...)
}
