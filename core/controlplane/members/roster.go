package members

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Roster is what the people who run the service see and do about the people of any database. It does not authenticate. An owner
// whose plan no longer includes the API cannot remove members: the operator does it then, also from a deleted database.
type Roster struct{ members *Members }

// NewRoster makes the use cases.
func NewRoster(p *base.Base) *Roster { return &Roster{&Members{base: p}} }

// People returns the owner, the members and the invitations of a database. DATABASE_NOT_FOUND.
func (r *Roster) People(ctx context.Context, db id.DatabaseID) (l Listing, err error) {
	err = r.members.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		l, err = r.members.list(ctx, tx, locked)
		return err
	})
	return l, err
}

// Removed counts what an address has lost.
type Removed struct{ Memberships, Invitations int }

// RemovePerson ends the membership and the invitation of an address, as Members.Remove and Revoke do for the owner.
// VALIDATION_ERROR on "email". DATABASE_NOT_FOUND. MEMBER_NOT_FOUND: the address has neither.
func (r *Roster) RemovePerson(ctx context.Context, db id.DatabaseID, email string) (done Removed, err error) {
	if email, err = account.ValidateEmail(email); err != nil {
		return done, err
	}
	err = r.members.base.UpdateStored(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		done, err = r.remove(ctx, tx, locked, email)
		if err == nil && done == (Removed{}) {
			err = fault.New(fault.MemberNotFound, "the address is neither a member's of this database nor invited to it")
		}
		return err
	})
	return done, err
}

func (r *Roster) remove(ctx context.Context, tx ports.Tx, db database.Record, email string) (done Removed, err error) {
	people, err := r.members.list(ctx, tx, db)
	if err != nil {
		return done, err
	}
	for _, who := range people.Members {
		if who.Email == email {
			if err := r.members.remove(ctx, tx, audit.Operator, db, who); err != nil {
				return done, err
			}
			done.Memberships++
		}
	}
	for _, i := range people.Invitations {
		if i.Email == email {
			if err := r.members.revoke(ctx, tx, audit.Operator, db, i); err != nil {
				return done, err
			}
			done.Invitations++
		}
	}
	return done, nil
}
