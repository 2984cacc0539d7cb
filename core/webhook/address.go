package webhook

import "net/netip"

// why names the most specific block that contains a refused address; "" for a public unicast one, to which a delivery may go.
// Refused are the whole IANA special-purpose registries for IPv4 and IPv6, multicast, every form of IPv6 address that carries an
// IPv4 address, IPv6 outside the global unicast space, and any address with a zone.
func why(a netip.Addr) string {
	switch {
	case a.Zone() != "":
		return "zone"
	case a.Is4():
		return mostSpecific(specialIPv4, a)
	}
	if name := mostSpecific(specialIPv6, a); name != "" {
		return name
	}
	if !globalUnicast.Contains(a) {
		return "unassigned"
	}
	return ""
}

func mostSpecific(table []special, a netip.Addr) string {
	name, bits := "", -1
	for _, s := range table {
		if s.block.Bits() > bits && contains(s.block, a) {
			name, bits = s.name, s.block.Bits()
		}
	}
	return name
}

// contains compares bits. Unlike it, netip's Contains never matches an IPv4-mapped address.
func contains(block netip.Prefix, a netip.Addr) bool {
	if block.Addr().BitLen() != a.BitLen() {
		return false
	}
	b, c := block.Addr().AsSlice(), a.AsSlice()
	whole, rest := block.Bits()/8, block.Bits()%8
	for i := range whole {
		if b[i] != c[i] {
			return false
		}
	}
	return rest == 0 || (b[whole]^c[whole])>>(8-rest) == 0
}
