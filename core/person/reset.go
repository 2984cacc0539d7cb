package person

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

// How long the link works with which a person chooses a password or, where the operator has made it, logs in.
const (
	ResetTime = 30 * time.Minute
	// WelcomeTime is that of somebody who has none yet: an operator, who may hand it over by any way, has just made the user.
	WelcomeTime = 7 * 24 * time.Hour
)

// Reset is a link that a person was given. There is one at a time, and it is deleted when it is used.
type Reset struct {
	UserID     id.UserID `db:"user_id"`
	TokenHash  []byte    `db:"token_hash"`
	ExpiresAt  time.Time `db:"expires_at"`
	ByOperator bool      `db:"by_operator"` // who has made it, not asked for by mail: then it also logs in
}

// NewReset is a link of a person.
func NewReset(of id.UserID, hasPassword bool, hash token.Hash, now time.Time) Reset {
	life := WelcomeTime
	if hasPassword {
		life = ResetTime
	}
	return Reset{UserID: of, TokenHash: hash[:], ExpiresAt: now.Add(life)}
}

// Works reports whether the link works at a time.
func (r Reset) Works(now time.Time) bool { return now.Before(r.ExpiresAt) }
