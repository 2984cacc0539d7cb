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
	seen   map[string]map[netip.Addr]time.Time
	found  map[string]bool // whether a host was found once, or has no address
	known  atomic.Pointer[map[netip.Addr]bool]
	all    atomic.Bool
}

// Known reports whether Refresh has found every host that is listed. It also counts a name that does not exist as found: it leads
// nobody anywhere. Until then Has may lack an address.
func (o *Own) Known() bool { return o.all.Load() }

// Has reports whether an address is one of an own host, as far as Refresh has found.
func (o *Own) Has(a netip.Addr) bool {
	known := o.known.Load()
	return known != nil && (*known)[plain(a)]
}

func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Refresh looks all hosts up. One that cannot be looked up keeps the addresses that it had, and is named in the error; one that
// is listed no more has none. If they cannot all be listed, those that were, now or before, are looked up.
func (o *Own) Refresh(ctx context.Context) error {
	hosts, unlisted := o.Hosts(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	if unlisted != nil {
		hosts = slices.AppendSeq(hosts, maps.Keys(o.seen))
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	answers, err := o.lookUp(ctx, hosts)
	o.listed = o.listed || unlisted == nil
	now, seen, found := o.Now(), map[string]map[netip.Addr]time.Time{}, map[string]bool{}
	all, complete := map[netip.Addr]bool{}, o.listed
	for _, host := range hosts {
		answer := answers[host]
		seen[host] = answer.merge(o.seen[host], now)
		for a := range seen[host] {
			all[a] = true
		}
		found[host] = o.found[host] || answer.ends()
		complete = complete && found[host]
	}
	o.seen, o.found = seen, found
	o.known.Store(&all)
	o.all.Store(complete)
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
