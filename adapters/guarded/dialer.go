// Package guarded opens connections to hosts that somebody outside the service has named: receivers of webhooks, and whatever
// issuers of tokens refer to. It is no adapter of a port: adapters that do so share it, so that there is one guard.
//
// A name is looked up, all its addresses are checked, and those very addresses are dialled; the kernel's own view of the address
// is checked once more before it connects. So a name that answers differently the next time gains nothing.
package guarded

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/pgherd/pgherd/core/webhook"
)

// maxDialled bounds how many of a name's addresses are dialled; all of them are checked.
const maxDialled = 4

// Resolver looks host names up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer dials what its policy allows.
type Dialer struct {
	Policy   webhook.Policy
	Resolver Resolver // nil: the system's
}

// Addresses looks up the host of a checked URL, and checks everything that it resolves to. What the policy refuses is
// INVALID_WEBHOOK_ENDPOINT, and webhook.ErrOwnUnknown while it cannot tell; every other error is the resolver's.
func (d Dialer) Addresses(ctx context.Context, t webhook.Target) ([]netip.Addr, error) {
	if err := d.Policy.Ready(); err != nil {
		return nil, err
	}
	if t.Address.IsValid() {
		return []netip.Addr{t.Address}, nil // the policy has checked it as part of the URL
	}
	name := t.Host
	if !d.Policy.AllowPrivate {
		name += "." // a full name: the resolver tries no domain of the machine
	}
	var resolver Resolver = net.DefaultResolver
	if d.Resolver != nil {
		resolver = d.Resolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = found[i].Unmap() // some resolvers give every IPv4 address in IPv6 form
	}
	if err := d.Policy.DecideAddresses(found); err != nil {
		return nil, err
	}
	return found, nil
}

// Dial tries the first few of the addresses, one after the other; each gets an equal part of the time that is left.
func (d Dialer) Dial(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	addresses = addresses[:min(len(addresses), maxDialled)]
	last := ErrNotAllowed
	for i, a := range addresses {
		share, cancel := part(ctx, len(addresses)-i)
		conn, err := d.dial(share, net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

func part(ctx context.Context, of int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(of))
}

// ErrNotAllowed means that the address about to be dialled is not allowed, although the looked-up ones were.
var ErrNotAllowed = errors.New("the address may not be dialled")

func (d Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAlive: -1, Control: d.guard}
	return dialer.DialContext(ctx, "tcp", address)
}

// guard sees the address as it goes to the kernel, just before it connects.
func (d Dialer) guard(_, address string, _ syscall.RawConn) error {
	if err := d.Policy.Ready(); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil || !d.Policy.Allows(at.Addr()) {
		return ErrNotAllowed
	}
	return nil
}

// Roots are the authorities to trust: nil, the system's, or those and further ones in PEM. It fails if these hold no certificate
// or the system's cannot be read.
func Roots(extraCA []byte) (*x509.CertPool, error) {
	if len(extraCA) == 0 {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificates: %w", err)
	}
	if !roots.AppendCertsFromPEM(extraCA) {
		return nil, errors.New("the file of further authorities holds no PEM certificate")
	}
	return roots, nil
}
