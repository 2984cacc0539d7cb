package conn

import (
	"net"
	"net/netip"
)

// SocketAddress is the address of a TCP socket; none for any other one.
func SocketAddress(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Within reports whether an address is in one of the networks.
func Within(a netip.Addr, networks []netip.Prefix) bool {
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
