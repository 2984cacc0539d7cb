package database

import (
	"net/netip"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/network"
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

// ParseCIDR reads the network of an entry.
func ParseCIDR(s string) (netip.Prefix, error) { return network.Parse("cidr", s) }

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
