package person

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
)

// ResetTime is how long the link works with which a person chooses another password.
const ResetTime = 30 * time.Minute

// Reset is a link that a person was sent. There is one at a time, and it is deleted when it is used.
type Reset struct {
	UserID    id.UserID `db:"user_id"`
	TokenHash []byte    `db:"token_hash"`
	CreatedAt time.Time `db:"created_at"`
}

// Ends is when the link stops working.
func (r Reset) Ends() time.Time { return r.CreatedAt.Add(ResetTime) }

// Works reports whether the link works at a time.
func (r Reset) Works(now time.Time) bool { return now.Before(r.Ends()) }
