package webhook

import (
	"errors"
	"net/netip"

	"github.com/pgherd/pgherd/core/fault"
)

// Policy determines where deliveries may go, and where issuers of CI tokens are asked. The zero value allows public addresses.
type Policy struct {
	// AllowPrivate allows private addresses, local host names and the installation's own hosts, all of which are one machine
	// then. Development only.
	AllowPrivate bool
	// Refused are further networks of the operator: public addresses at which the service itself listens.
	Refused []netip.Prefix
	// Own reports whether an address is one of the installation's own hosts, which may change; nil: none is.
	Own func(netip.Addr) bool
	// OwnKnown reports whether Own knows all of them; nothing may be asked before. Nil: it does.
	OwnKnown func() bool
}

// ErrOwnUnknown means that nothing may be asked yet: it could be one of the installation's own hosts.
var ErrOwnUnknown = errors.New("the installation's own hosts are not known yet")

// Ready returns ErrOwnUnknown while no address can be decided.
func (p Policy) Ready() error {
	if !p.AllowPrivate && p.OwnKnown != nil && !p.OwnKnown() {
		return ErrOwnUnknown
	}
	return nil
}

// Allows reports whether a connection to the address may be opened.
func (p Policy) Allows(a netip.Addr) bool { return p.refusal(a) == "" }

// refusal says why the address is not allowed; "" if it is.
func (p Policy) refusal(a netip.Addr) string {
	if !a.IsValid() {
		return "no address"
	}
	if !p.AllowPrivate {
		if name := why(a); name != "" {
			return name
		}
	}
	for _, network := range p.Refused {
		if contains(network, a) || contains(network, a.Unmap()) {
			return "refused by the operator"
		}
	}
	if !p.AllowPrivate && p.Own != nil && p.Own(a) {
		return "a host of the installation"
	}
	return ""
}

// DecideAddresses checks everything that a host name resolves to. It returns INVALID_WEBHOOK_ENDPOINT if there is no address,
// or one that is not allowed.
func (p Policy) DecideAddresses(addresses []netip.Addr) error {
	if len(addresses) == 0 {
		return refuseURL("its host name does not resolve")
	}
	for _, a := range addresses {
		if p.refusal(a) != "" {
			return refuseURL("its host name resolves to an address that is not public")
		}
	}
	return nil
}

// refuseURL makes the error for a refused URL.
func refuseURL(format string, args ...any) *fault.Error {
	detail := fault.Invalid("url", format, args...)
	refused := fault.New(fault.InvalidWebhookEndpoint, "the URL cannot be used: %s", detail.Details[0].Issue)
	refused.Details = detail.Details
	return refused
}
