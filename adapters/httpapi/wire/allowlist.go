package wire

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// AllowlistEntry is a network that may connect.
type AllowlistEntry struct {
	ID          id.AllowlistEntryID `json:"id"`
	CIDR        string              `json:"cidr" example:"198.51.100.0/24"`
	Description string              `json:"description" example:"Office"`
	CreatedAt   time.Time           `json:"createdAt"`
}

// AddAllowlistEntry lets a network connect.
type AddAllowlistEntry struct {
	CIDR        string  `json:"cidr" description:"an IPv4 or IPv6 network or address" example:"198.51.100.0/24"`
	Description *string `json:"description,omitzero" example:"Office"`
}
