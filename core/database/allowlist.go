package database

import (
	"net/netip"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// MaxAllowlistEntries bounds the allowlist of one database.
const MaxAllowlistEntries = 100

// AllowlistEntry allows one network to connect. A database without entries is open to every address.
type AllowlistEntry struct {
	ID          id.AllowlistEntryID `db:"id"`
	DatabaseID  id.DatabaseID       `db:"database_id"`
	CIDR        string              `db:"cidr"`
	Description string              `db:"description"`
	CreatedAt   time.Time           `db:"created_at"`
}

// ParseCIDR accepts an IPv4 or IPv6 network or a bare address, and returns the canonical form. Host bits, zones and
// IPv4-mapped IPv6 addresses are refused.
func ParseCIDR(s string) (netip.Prefix, error) {
	prefix, err := parsePrefix(s)
	switch {
	case err != nil:
		return prefix, fault.Invalid("cidr", "must be an IPv4 or IPv6 network or address")
	case prefix.Addr().Is4In6():
		return prefix, fault.Invalid("cidr", "must be written as IPv4")
	case prefix.Masked() != prefix:
		return prefix, fault.Invalid("cidr", "has host bits set; the network is %s", prefix.Masked())
	}
	return prefix, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, fault.Invalid("cidr", "zone")
	}
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// ValidateDescription trims and checks the note of an entry: at most 200 characters, no control characters.
func ValidateDescription(s string) (string, error) { return fault.Label("description", s, 0, 200) }

// AdmitEntry decides whether a network may be added to the list: no duplicate, at most MaxAllowlistEntries.
func AdmitEntry(existing []AllowlistEntry, network netip.Prefix) error {
	if len(existing) >= MaxAllowlistEntries {
		return fault.Invalid("cidr", "the allowlist holds at most %d entries", MaxAllowlistEntries)
	}
	for _, e := range existing {
		if e.CIDR == network.String() {
			return fault.Invalid("cidr", "is already on the allowlist")
		}
	}
	return nil
}
