package members

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Acceptance is the request of an invited person. Name and Password are those of a new person; a user needs neither, and nobody
// has a password where people have to sign on.
type Acceptance struct {
	Token          string
	Name, Password *string
}

// errBecameUser means that another acceptance has made the user of the address.
var errBecameUser = errors.New("the address is a user's by now")

// Accept makes the holder of an invitation's token a member. For an address that is no user's it makes the user, and an
// account of the user's own on the free plan. The token is looked up before anything else is done, and works once, also where
// many present it at the same moment.
//
// INVITATION_NOT_FOUND, the same for a token that is unknown, used, replaced, withdrawn or expired. VALIDATION_ERROR on "name"
// or "password". SERVER_BUSY, RATE_LIMITED: too many passwords are being hashed.
func (m *Members) Accept(ctx context.Context, a Acceptance) (member.Member, error) {
	hash, ok := token.Parse(a.Token)
	if !ok {
		return member.Member{}, member.ErrNotFound()
	}
	i, known, err := m.find(ctx, hash)
	switch {
	case err != nil:
		return member.Member{}, err
	case known:
		return m.accept(ctx, i.DatabaseID, hash, nil)
	}
	return m.acceptNew(ctx, hash, i, a)
}

// find returns the open invitation of a token, and whether its address is a user's. A database that is being deleted takes no
// new members, so for it no password is hashed.
func (m *Members) find(ctx context.Context, hash token.Hash) (i member.Invitation, known bool, err error) {
	err = m.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		if i, err = tx.Invitations().ByToken(ctx, hash); err != nil {
			return base.NotFound(err, member.ErrNotFound())
		}
		if _, err := i.Accepted(m.base.Clock.Now()); err != nil {
			return err
		}
		switch db, err := tx.Databases().Get(ctx, i.DatabaseID); {
		case err != nil:
			return base.NotFound(err, member.ErrNotFound())
		case db.Status == database.Deleting || db.Status.Gone():
			return member.ErrNotFound()
		}
		_, err := tx.Accounts().UserByEmail(ctx, i.Email)
		known = err == nil
		if isMissing(err) {
			return nil
		}
		return err
	})
	return i, known, err
}

// acceptNew accepts for an address that is no user's. It holds its turn to hash until all is stored: of many who wait with one
// token, the others find it used, and no password is hashed in vain.
func (m *Members) acceptNew(ctx context.Context, hash token.Hash, i member.Invitation, a Acceptance) (member.Member, error) {
	name, err := m.newName(a)
	if err != nil {
		return member.Member{}, err
	}
	release, err := m.base.Hashing.Enter(ctx, i.AccountID, base.ThisProcess)
	if err != nil {
		return member.Member{}, err
	}
	defer release()
	switch _, known, err := m.find(ctx, hash); {
	case err != nil:
		return member.Member{}, err
	case known:
		return m.accept(ctx, i.DatabaseID, hash, nil)
	}
	stored := ""
	if a.Password != nil {
		if stored, err = m.base.Passwords.Hash(*a.Password, m.base.Entropy.Salt()); err != nil {
			return member.Member{}, err
		}
	}
	joined, err := m.accept(ctx, i.DatabaseID, hash, &account.User{
		ID: base.NewID[id.UserID](m.base.Entropy), Email: i.Email, Name: name, PasswordHash: stored, CreatedAt: m.base.Clock.Now(),
	})
	if errors.Is(err, errBecameUser) {
		return m.accept(ctx, i.DatabaseID, hash, nil)
	}
	return joined, err
}

// newName checks what a new person has to say.
func (m *Members) newName(a Acceptance) (string, error) {
	rules := m.base.SignOnRules
	switch {
	case a.Name == nil:
		return "", fault.Invalid("name", "is required, since this address is no user's yet")
	case a.Password == nil && !rules.Required:
		return "", fault.Invalid("password", "is required, since this address is no user's yet")
	case a.Password != nil && rules.Required:
		return "", fault.Invalid("password", "is not chosen here: people log in by %s", rules.Name)
	}
	name, err := account.ValidateName(*a.Name)
	if err != nil || rules.Required {
		return name, err
	}
	return name, account.ValidatePassword(*a.Password)
}

// accept does it, in one transaction that has locked the database: of many with the same token the first finds it open.
func (m *Members) accept(
	ctx context.Context, db id.DatabaseID, hash token.Hash, person *account.User,
) (joined member.Member, err error) {
	membership := base.NewID[id.MembershipID](m.base.Entropy)
	owned := base.NewID[id.AccountID](m.base.Entropy)
	err = m.base.UpdateDatabase(ctx, db, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		i, err := m.stillOpen(ctx, tx, db, hash)
		if err != nil {
			return err
		}
		user, err := userOf(ctx, tx, i, person, owned)
		if err != nil {
			return err
		}
		joined, err = m.become(ctx, tx, db, i, member.Membership{
			ID: membership, DatabaseID: db.ID, UserID: user.ID, Role: i.Role, CreatedAt: *i.EndedAt,
		})
		return err
	})
	return joined, base.NotFound(err, member.ErrNotFound())
}

// stillOpen is the invitation as its acceptance leaves it. A database that is being deleted takes no new members.
func (m *Members) stillOpen(
	ctx context.Context, tx ports.Tx, db database.Record, hash token.Hash,
) (i member.Invitation, err error) {
	if i, err = tx.Invitations().ByToken(ctx, hash); err != nil {
		return i, err
	}
	switch {
	case i.DatabaseID != db.ID || db.Status == database.Deleting || db.Status.Gone():
		return i, member.ErrNotFound()
	case db.Suspended():
		return i, account.ErrOwnerSuspended()
	}
	return i.Accepted(m.base.Clock.Now())
}

// userOf returns the user with the invitation's address, and makes one if there is none.
func userOf(
	ctx context.Context, tx ports.Tx, i member.Invitation, person *account.User, owned id.AccountID,
) (account.User, error) {
	user, err := tx.Accounts().UserByEmail(ctx, i.Email)
	switch {
	case err == nil || !isMissing(err):
		return user, err
	case person == nil: // a user had the address, but has another one now
		return user, member.ErrNotFound()
	}
	err = tx.Accounts().AddUser(ctx, *person)
	if fault.Has(err, fault.ValidationError) {
		return user, errBecameUser
	}
	if err != nil {
		return user, err
	}
	return *person, tx.Accounts().Add(ctx, account.Account{
		ID: owned, OwnerID: person.ID, Plan: account.Free, CreatedAt: person.CreatedAt,
	})
}

// become stores the membership and the end of its invitation.
func (m *Members) become(
	ctx context.Context, tx ports.Tx, db database.Record, i member.Invitation, fresh member.Membership,
) (joined member.Member, err error) {
	owner, err := ownerOf(ctx, tx, db)
	switch {
	case err != nil:
		return joined, err
	case owner.ID == fresh.UserID:
		return joined, member.ErrOwner()
	}
	if err := tx.Members().Set(ctx, fresh); err != nil {
		return joined, err
	}
	if err := m.end(ctx, tx, i); err != nil {
		return joined, err
	}
	if joined, err = tx.Members().OfUser(ctx, db.ID, fresh.UserID); err != nil {
		return joined, err
	}
	details := about(joined)
	details["invitationId"] = string(i.ID)
	return joined, m.base.Audit(ctx, tx, db, audit.ByUser(joined.UserID), audit.InvitationAccepted, details)
}
