package ports

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
)

// Members keeps who besides its owner may use a database. Writers must hold the database's lock (Databases.Lock).
type Members interface {
	// Set makes a user a member of a database; of somebody who is one already it changes the role alone. ErrNoRow where there is no
	// such user or database.
	Set(ctx context.Context, m member.Membership) error
	// Get returns a member of a database; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, m id.MembershipID) (member.Member, error)
	// OfUser returns the membership of a user; ErrNoRow when there is none.
	OfUser(ctx context.Context, db id.DatabaseID, user id.UserID) (member.Member, error)
	// List returns the members of a database, the oldest first.
	List(ctx context.Context, db id.DatabaseID) ([]member.Member, error)
	// Remove deletes a membership, and unbinds the user's keys from the database: whoever becomes a member again has to be given a
	// key again. ErrNoRow when there is no such membership.
	Remove(ctx context.Context, m member.Membership) error
}

// Invitations keeps invitations, of which each token is stored as a hash. Writers must hold the database's lock.
type Invitations interface {
	// Add stores an invitation. An address has one invitation at a time that is open or expired.
	Add(ctx context.Context, i member.Invitation) error
	// Get returns an invitation to a database, whatever its status; ErrNoRow when there is none.
	Get(ctx context.Context, db id.DatabaseID, i id.InvitationID) (member.Invitation, error)
	// ByToken returns the invitation with a token, whatever its status; ErrNoRow when there is none.
	ByToken(ctx context.Context, hash token.Hash) (member.Invitation, error)
	// List returns the invitations to a database that are open or expired, the oldest first.
	List(ctx context.Context, db id.DatabaseID) ([]member.Invitation, error)
	// Save writes every field that can change: role, token, status, expiry and end. ErrNoRow when there is no such invitation.
	Save(ctx context.Context, i member.Invitation) error
	// Overdue lists up to limit open invitations whose time is over, the earliest first.
	Overdue(ctx context.Context, now time.Time, limit int) ([]member.Invitation, error)
	// Forget deletes up to limit invitations that ended before a time.
	Forget(ctx context.Context, before time.Time, limit int) error
}
