package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// AllowlistEntry is a network that may connect.
type AllowlistEntry struct {
	ID          id.AllowlistEntryID `json:"id" format:"uuid"`
	CIDR        string              `json:"cidr"`
	Description string              `json:"description"`
	CreatedAt   time.Time           `json:"createdAt"`
}

// AddAllowlistEntry lets a network connect.
type AddAllowlistEntry struct {
	CIDR        string  `json:"cidr" description:"an IPv4 or IPv6 network or address"`
	Description *string `json:"description,omitzero"`
}
