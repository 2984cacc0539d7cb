package webhook

import (
	"net/netip"

	"github.com/pgherd/pgherd/core/fault"
)

// Policy says to where deliveries may go. The zero value is what every host but a development one uses.
type Policy struct {
	// AllowPrivate lets private addresses and local host names through. Development only.
	AllowPrivate bool
	// Refused are further networks of the operator: public addresses at which the service itself listens.
	Refused []netip.Prefix
}

// Allows reports whether a connection to the address may be opened.
func (p Policy) Allows(a netip.Addr) bool { return p.refusal(a) == "" }

// refusal says why the address may not be reached; "" where it may.
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

// DecideAddresses checks all that a host name resolves to: there is an address, and every one may be reached.
// INVALID_WEBHOOK_ENDPOINT.
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

// refuseURL is the one shape of a refused URL.
func refuseURL(format string, args ...any) *fault.Error {
	detail := fault.Invalid("url", format, args...)
	refused := fault.New(fault.InvalidWebhookEndpoint, "the URL cannot be used: %s", detail.Details[0].Issue)
	refused.Details = detail.Details
	return refused
}
