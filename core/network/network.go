// Package network parses networks and says which addresses are in them.
package network

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/fault"
)

// Parse accepts an IPv4 or IPv6 network or a bare address, and returns the canonical form. Host bits, zones and IPv4-mapped IPv6
// addresses are refused. VALIDATION_ERROR on the field.
func Parse(field, text string) (netip.Prefix, error) {
	prefix, issue := read(text)
	if issue != "" {
		return prefix, fault.Invalid(field, "%s", issue)
	}
	return prefix, nil
}

// read returns a network, or what is wrong with it.
func read(text string) (p netip.Prefix, issue string) {
	const none = "must be an IPv4 or IPv6 network or address"
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return p, none
		}
		p = prefix
	} else {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return p, none
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	switch {
	case p.Addr().Is4In6():
		return p, "must be written as IPv4"
	case p.Masked() != p:
		return p, "has host bits set; the network is " + p.Masked().String()
	}
	return p, ""
}

// List is a set of networks: in their canonical form, sorted, with a blank between them, which is how it is stored. The empty
// list is every network.
type List string

// MostInList bounds a list.
const MostInList = 50

// ParseList reads the networks of a list; the word any, alone, is the empty one. VALIDATION_ERROR on the field: there is none,
// one cannot be read, stands there twice, or they are too many.
func ParseList(field string, texts []string) (List, error) {
	switch {
	case len(texts) == 0:
		return "", fault.Invalid(field, "must name a network, or be any")
	case len(texts) == 1 && texts[0] == "any":
		return "", nil
	case slices.Contains(texts, "any"):
		return "", fault.Invalid(field, "any stands alone, without networks")
	}
	if len(texts) > MostInList {
		return "", fault.Invalid(field, "there can be at most %d", MostInList)
	}
	list := make([]string, 0, len(texts))
	for _, text := range texts {
		prefix, issue := read(text)
		if issue != "" {
			return "", fault.Invalid(field, "%q %s", text, issue)
		}
		if slices.Contains(list, prefix.String()) {
			return "", fault.Invalid(field, "%s is there twice", prefix)
		}
		list = append(list, prefix.String())
	}
	slices.Sort(list)
	return List(strings.Join(list, " ")), nil
}

// Texts are the networks one by one.
func (l List) Texts() []string { return strings.Fields(string(l)) }

// Contains reports whether an address is in one of the networks. An IPv4 address that is written as IPv6 is the IPv4 address. An
// address that is not known is in the empty list alone, and what cannot be read contains nothing.
func (l List) Contains(a netip.Addr) bool {
	if l == "" {
		return true
	}
	a = a.Unmap().WithZone("")
	for _, text := range l.Texts() {
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(a) {
			return true
		}
	}
	return false
}
