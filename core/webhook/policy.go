package webhook

import (
	"net/netip"

	"github.com/pgherd/pgherd/core/fault"
)

// Policy determines where deliveries may go. All hosts but the development host use the zero value.
type Policy struct {
	// AllowPrivate allows private addresses and local host names. Development only.
	AllowPrivate bool
	// Refused are further networks of the operator: public addresses at which the service itself listens.
	Refused []netip.Prefix
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
