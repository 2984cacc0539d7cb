package guests

import (
	"net/netip"
	"strings"
)

// Within reports whether an address is in one of the networks.
func Within(a netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// ClientOf is the address of the client of a request: the socket's or, if that is a proxy, the last hop that a X-Forwarded-For
// names, which the proxy wrote. The lines are those of that header, in their order. Earlier hops come from the client and are not
// trusted.
func ClientOf(socket netip.Addr, forwardedFor []string, proxies []netip.Prefix) netip.Addr {
	if !Within(socket, proxies) || len(forwardedFor) == 0 {
		return socket
	}
	last := forwardedFor[len(forwardedFor)-1]
	hop := strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	if a, ok := parseHop(hop); ok {
		return a
	}
	return socket
}

// parseHop accepts an address with or without a port.
func parseHop(hop string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddrPort(hop)
	return a.Addr().Unmap().WithZone(""), err == nil
}
