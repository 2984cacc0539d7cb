// Package members is who besides its owner may use a database: members, invitations, and how one becomes the other.
package members

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

// Members manages the people of a database (spec, section "Members and invitations"). All but Accept is for the owner, with a
// full-account key.
type Members struct{ base *base.Base }

// New makes the use cases, and registers their periodic task.
func New(p *base.Base) *Members {
	m := &Members{p}
	m.registerRounds()
	return m
}

// Listing is the people of a database.
type Listing struct {
	Owner       account.User
	Members     []member.Member
	Invitations []member.Invitation
}

// List returns the owner, the members and the invitations of a database. KEY_SCOPE_DENIED; FORBIDDEN for all but the owner.
func (m *Members) List(ctx context.Context, r access.Reached) (Listing, error) {
	if err := permit(r); err != nil {
		return Listing{}, err
	}
	return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) (Listing, error) {
		return m.list(ctx, tx, r.Record())
	})
}

func (m *Members) list(ctx context.Context, tx ports.Tx, db database.Record) (l Listing, err error) {
	if l.Owner, err = ownerOf(ctx, tx, db); err != nil {
		return l, err
	}
	if l.Members, err = tx.Members().List(ctx, db.ID); err != nil {
		return l, err
	}
	l.Invitations, err = m.invitations(ctx, tx, db.ID)
	return l, err
}

// Invitations returns the invitations to a database that are open or expired, the oldest first. Errors as for List.
func (m *Members) Invitations(ctx context.Context, r access.Reached) ([]member.Invitation, error) {
	if err := permit(r); err != nil {
		return nil, err
	}
	return ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]member.Invitation, error) {
		return m.invitations(ctx, tx, r.Record().ID)
	})
}

func (m *Members) invitations(ctx context.Context, tx ports.Tx, db id.DatabaseID) ([]member.Invitation, error) {
	list, err := tx.Invitations().List(ctx, db)
	now := m.base.Clock.Now()
	for i := range list {
		list[i] = list[i].At(now)
	}
	return list, err
}

// SetRole changes the role of a member, whose keys have the new rights at once. VALIDATION_ERROR on "role". MEMBER_NOT_FOUND,
// DATABASE_NOT_FOUND; errors as for List.
func (m *Members) SetRole(
	ctx context.Context, r access.Reached, of id.MembershipID, role account.Standing,
) (changed member.Member, err error) {
	if _, err := member.ParseRole(string(role)); err != nil {
		return changed, err
	}
	err = m.update(ctx, r, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		if changed, err = tx.Members().Get(ctx, db.ID, of); err != nil {
			return base.NotFound(err, errMemberNotFound())
		}
		changed, err = m.setRole(ctx, tx, r, db, changed, role)
		return err
	})
	return changed, err
}

// setRole stores a role that is another one.
func (m *Members) setRole(
	ctx context.Context, tx ports.Tx, r access.Reached, db database.Record, who member.Member, role account.Standing,
) (member.Member, error) {
	if who.Role == role {
		return who, nil
	}
	details := about(who)
	details["from"], details["role"] = string(who.Role), string(role)
	who.Role = role
	if err := tx.Members().Set(ctx, who.Membership); err != nil {
		return who, err
	}
	return who, m.base.Audit(ctx, tx, db, r.Caller().Actor(), audit.MemberRoleChanged, details)
}

// Remove ends a membership. The person's keys lose the database at once, and for good: whoever becomes a member again needs a
// key that is bound to it again. Passwords of logins that the person knows stay as they are. MEMBER_NOT_FOUND,
// DATABASE_NOT_FOUND; errors as for List.
func (m *Members) Remove(ctx context.Context, r access.Reached, of id.MembershipID) error {
	return m.update(ctx, r, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		who, err := tx.Members().Get(ctx, db.ID, of)
		if err != nil {
			return base.NotFound(err, errMemberNotFound())
		}
		return m.remove(ctx, tx, r.Caller().Actor(), db, who)
	})
}

func (m *Members) remove(ctx context.Context, tx ports.Tx, by audit.Actor, db database.Record, who member.Member) error {
	if err := tx.Members().Remove(ctx, who.Membership); err != nil {
		return err
	}
	return m.base.Audit(ctx, tx, db, by, audit.MemberRemoved, about(who))
}

// update runs fn for the owner, in a transaction that has locked the database.
func (m *Members) update(ctx context.Context, r access.Reached, fn base.LockedUpdate) error {
	if err := permit(r); err != nil {
		return err
	}
	return r.Update(ctx, m.base, fn)
}

// permit lets in only the owner with a full-account key.
func permit(r access.Reached) error {
	if err := r.Permit(account.Own); err != nil {
		return err
	}
	return r.Caller().RequireFullAccount()
}

// ownerOf is the person who owns the account of a database.
func ownerOf(ctx context.Context, tx ports.Tx, db database.Record) (account.User, error) {
	owning, err := tx.Accounts().Get(ctx, db.AccountID)
	if err != nil {
		return account.User{}, err
	}
	return tx.Accounts().User(ctx, owning.OwnerID)
}

// about is what the activity log says of a member.
func about(who member.Member) audit.Details {
	return audit.Details{"membershipId": string(who.ID), "email": who.Email, "role": string(who.Role)}
}

func errMemberNotFound() error {
	return fault.New(fault.MemberNotFound, "no such member of this database")
}

func isMissing(err error) bool { return errors.Is(err, ports.ErrNoRow) }
