package webhook

import "net/netip"

// special is a block of addresses that never receives a delivery.
type special struct {
	block netip.Prefix
	name  string
	rfc   string
}

func block(prefix, name, rfc string) special {
	return special{netip.MustParsePrefix(prefix), name, rfc}
}

// specialIPv4 is the IANA IPv4 Special-Purpose Address Registry, every row of it, and after it the IPv4 multicast space, which
// has a registry of its own. Rows that the registry marks as globally reachable are included: they are anycast services of the
// network, not receivers.
var specialIPv4 = []special{
	block("0.0.0.0/8", "this network", "RFC 791"),
	block("0.0.0.0/32", "this host on this network", "RFC 1122"),
	block("10.0.0.0/8", "private use", "RFC 1918"),
	block("100.64.0.0/10", "carrier-grade NAT", "RFC 6598"),
	block("127.0.0.0/8", "loopback", "RFC 1122"),
	block("169.254.0.0/16", "link-local", "RFC 3927"),
	block("172.16.0.0/12", "private use", "RFC 1918"),
	block("192.0.0.0/24", "IETF protocol assignments", "RFC 6890"),
	block("192.0.0.0/29", "IPv4 service continuity", "RFC 7335"),
	block("192.0.0.8/32", "IPv4 dummy address", "RFC 7600"),
	block("192.0.0.9/32", "port control protocol anycast", "RFC 7723"),
	block("192.0.0.10/32", "TURN anycast", "RFC 8155"),
	block("192.0.0.170/32", "NAT64/DNS64 discovery", "RFC 8880"),
	block("192.0.0.171/32", "NAT64/DNS64 discovery", "RFC 8880"),
	block("192.0.2.0/24", "documentation", "RFC 5737"),
	block("192.31.196.0/24", "AS112", "RFC 7535"),
	block("192.52.193.0/24", "AMT", "RFC 7450"),
	block("192.88.99.0/24", "6to4 relay anycast", "RFC 7526"),
	block("192.88.99.2/32", "6a44 relay anycast", "RFC 6751"),
	block("192.168.0.0/16", "private use", "RFC 1918"),
	block("192.175.48.0/24", "direct delegation AS112", "RFC 7534"),
	block("198.18.0.0/15", "benchmarking", "RFC 2544"),
	block("198.51.100.0/24", "documentation", "RFC 5737"),
	block("203.0.113.0/24", "documentation", "RFC 5737"),
	block("240.0.0.0/4", "reserved", "RFC 1112"),
	block("255.255.255.255/32", "limited broadcast", "RFC 919"),

	block("224.0.0.0/4", "multicast", "RFC 5771"),
}

// specialIPv6 is the IANA IPv6 Special-Purpose Address Registry, every row of it, and after it what other RFCs set apart.
var specialIPv6 = []special{
	block("::1/128", "loopback", "RFC 4291"),
	block("::/128", "unspecified", "RFC 4291"),
	block("::ffff:0:0/96", "IPv4-mapped", "RFC 4291"),
	block("64:ff9b::/96", "NAT64", "RFC 6052"),
	block("64:ff9b:1::/48", "local-use NAT64", "RFC 8215"),
	block("100::/64", "discard-only", "RFC 6666"),
	block("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
	block("2001::/23", "IETF protocol assignments", "RFC 2928"),
	block("2001::/32", "Teredo", "RFC 4380"),
	block("2001:1::1/128", "port control protocol anycast", "RFC 7723"),
	block("2001:1::2/128", "TURN anycast", "RFC 8155"),
	block("2001:1::3/128", "DNS-SD service registration anycast", "RFC 9665"),
	block("2001:2::/48", "benchmarking", "RFC 5180"),
	block("2001:3::/32", "AMT", "RFC 7450"),
	block("2001:4:112::/48", "AS112", "RFC 7535"),
	block("2001:10::/28", "ORCHID", "RFC 4843"),
	block("2001:20::/28", "ORCHIDv2", "RFC 7343"),
	block("2001:30::/28", "drone remote ID", "RFC 9374"),
	block("2001:db8::/32", "documentation", "RFC 3849"),
	block("2002::/16", "6to4", "RFC 3056"),
	block("2620:4f:8000::/48", "direct delegation AS112", "RFC 7534"),
	block("3fff::/20", "documentation", "RFC 9637"),
	block("5f00::/16", "segment routing", "RFC 9602"),
	block("fc00::/7", "unique local", "RFC 4193"),
	block("fe80::/10", "link-local", "RFC 4291"),

	block("::/96", "IPv4-compatible", "RFC 4291"),
	block("::ffff:0:0:0/96", "IPv4-translated", "RFC 7915"),
	block("fec0::/10", "site-local", "RFC 3879"),
	block("ff00::/8", "multicast", "RFC 4291"),
}

// globalUnicast is the one part of the IPv6 address space from which public addresses are given out.
var globalUnicast = netip.MustParsePrefix("2000::/3")
