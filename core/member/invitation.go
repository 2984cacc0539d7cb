package member

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

// Validity is how long the token of an invitation can be used.
const Validity = 7 * 24 * time.Hour

// Kept is how long an invitation stays stored after its end; for so long an expired one can be sent again.
const Kept = 30 * 24 * time.Hour

// Invitation asks somebody who may not be a user yet to become a member of a database.
type Invitation struct {
	ID         id.InvitationID  `db:"id"`
	AccountID  id.AccountID     `db:"account_id"` // that owns the database
	DatabaseID id.DatabaseID    `db:"database_id"`
	Email      string           `db:"email"` // as account.ValidateEmail returns it
	Role       account.Standing `db:"role"`
	TokenHash  []byte           `db:"token_hash"`
	Status     Status           `db:"status"`
	CreatedAt  time.Time        `db:"created_at"`
	ExpiresAt  time.Time        `db:"expires_at"`
	EndedAt    *time.Time       `db:"ended_at"` // when it was accepted, revoked or expired
}

// Opened is a new invitation with its token, of which the fields before the token are given.
func (i Invitation) Opened(hash token.Hash, now time.Time) Invitation {
	i.TokenHash, i.Status, i.CreatedAt, i.ExpiresAt = hash[:], Open, now, now.Add(Validity)
	return i
}

// At is the invitation as it is at a time: an open one whose token has run out is expired, whether or not that is stored yet.
func (i Invitation) At(now time.Time) Invitation {
	if i.Status == Open && !now.Before(i.ExpiresAt) {
		end := i.ExpiresAt
		i.Status, i.EndedAt = Transitions[Open][Expire].Next, &end
	}
	return i
}

// Accepted returns the invitation after its token was used; INVITATION_NOT_FOUND if it cannot be used any more.
func (i Invitation) Accepted(now time.Time) (Invitation, error) { return i.apply(Accept, now) }

// Revoked returns the invitation after the owner has deleted it; INVITATION_NOT_FOUND where it has ended otherwise.
func (i Invitation) Revoked(now time.Time) (Invitation, error) { return i.apply(Revoke, now) }

// Resent returns the invitation with a new token and new days; the old token is worth nothing. INVITATION_NOT_FOUND where it was
// accepted or revoked.
func (i Invitation) Resent(role account.Standing, hash token.Hash, now time.Time) (Invitation, error) {
	i, err := i.apply(Resend, now)
	if err == nil {
		i.Role, i.TokenHash, i.ExpiresAt, i.EndedAt = role, hash[:], now.Add(Validity), nil
	}
	return i, err
}

// Masked is the address in the activity log, which is kept: its first character and its domain. Of somebody who never accepts
// nothing else is left once the invitation is forgotten. Until then the invitation has the address.
func (i Invitation) Masked() string {
	local, domain, _ := strings.Cut(i.Email, "@")
	_, first := utf8.DecodeRuneInString(local)
	return local[:first] + "…@" + domain
}

// apply applies an event by the table.
func (i Invitation) apply(on Event, now time.Time) (Invitation, error) {
	i = i.At(now)
	cell, err := Transitions.Decide(i.Status, on)
	if err != nil {
		return i, ErrNotFound()
	}
	i.Status, i.EndedAt = cell.Next, &now
	return i, nil
}

// ErrNotFound is the one answer about an invitation that is missing, used, deleted or expired.
func ErrNotFound() error { return fault.New(fault.InvitationNotFound, "no such invitation") }
