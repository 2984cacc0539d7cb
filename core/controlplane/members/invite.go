package members

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Added is what became of an address: a member, or an invitation.
type Added struct {
	Member     *member.Member
	Invitation *member.Invitation
}

// Add makes the user with an address a member, or sets the role of one who is a member; any other address is invited by mail. An
// address that is invited already gets a new token with the new role, as by Resend.
//
// VALIDATION_ERROR on "role" and "email". RATE_LIMITED: the account adds too many addresses, or too many mails went to this one.
// FEATURE_NOT_AVAILABLE: the installation sends no mails. MEMBER_CONFLICT: it is the owner's, or there is no room.
// DATABASE_STATE_CONFLICT while the database is being created or deleted. Further errors as for List.
func (m *Members) Add(ctx context.Context, r access.Reached, email string, role account.Standing) (Added, error) {
	if _, err := member.ParseRole(string(role)); err != nil {
		return Added{}, err
	}
	email, err := account.ValidateEmail(email)
	if err != nil {
		return Added{}, err
	}
	if err := m.mayInvite(ctx, r); err != nil {
		return Added{}, err
	}
	letter, err := m.newLetter()
	if err != nil {
		return Added{}, err
	}
	invitation := base.NewID[id.InvitationID](m.base.Entropy)
	membership := base.NewID[id.MembershipID](m.base.Entropy)
	var added Added
	err = m.update(ctx, r, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		if _, err := db.Status.Decide(database.Configure); err != nil {
			return err
		}
		user, err := tx.Accounts().UserByEmail(ctx, email)
		switch {
		case err == nil:
			added, err = m.join(ctx, tx, r, db, member.Membership{
				ID: membership, DatabaseID: db.ID, UserID: user.ID, Role: role, CreatedAt: m.base.Clock.Now(),
			})
		case isMissing(err):
			fresh := member.Invitation{ID: invitation, AccountID: db.AccountID, DatabaseID: db.ID, Email: email, Role: role}
			added, err = m.invite(ctx, tx, r, db, fresh.Opened(letter.hash, m.base.Clock.Now()), letter)
		}
		return err
	})
	return added, err
}

// mayInvite counts an address that is added, or invited again. The answer shows whether the address is a user's: the limit also
// bounds how many addresses can be tried.
func (m *Members) mayInvite(ctx context.Context, r access.Reached) error {
	if err := permit(r); err != nil {
		return err
	}
	return m.base.TakeOne(ctx, ratelimit.Invite, string(r.Record().AccountID),
		"the account adds or invites too many people; try again later")
}

// join makes a user a member, or sets the member's role. An invitation of the same address ends, whose token would give the role
// that the owner had chosen before.
func (m *Members) join(
	ctx context.Context, tx ports.Tx, r access.Reached, db database.Record, fresh member.Membership,
) (Added, error) {
	owner, err := ownerOf(ctx, tx, db)
	if err == nil && owner.ID == fresh.UserID {
		err = member.ErrOwner()
	}
	if err != nil {
		return Added{}, err
	}
	existing, err := tx.Members().OfUser(ctx, db.ID, fresh.UserID)
	if err == nil {
		changed, err := m.setRole(ctx, tx, r, db, existing, fresh.Role)
		return Added{Member: &changed}, err
	}
	if !isMissing(err) {
		return Added{}, err
	}
	joined, err := m.addMember(ctx, tx, r, db, fresh)
	return Added{Member: &joined}, err
}

func (m *Members) addMember(
	ctx context.Context, tx ports.Tx, r access.Reached, db database.Record, fresh member.Membership,
) (joined member.Member, err error) {
	people, invited, err := peopleOf(ctx, tx, db.ID)
	if err != nil {
		return joined, err
	}
	if err := member.AdmitMember(people, invited, m.base.Clock.Now()); err != nil {
		return joined, err
	}
	if err := tx.Members().Set(ctx, fresh); err != nil {
		return joined, err
	}
	if joined, err = tx.Members().Get(ctx, db.ID, fresh.ID); err != nil {
		return joined, err
	}
	for _, i := range invited {
		if i.Email == joined.Email {
			if err := m.revoke(ctx, tx, r.Caller().Actor(), db, i); err != nil {
				return joined, err
			}
		}
	}
	return joined, m.base.Audit(ctx, tx, db, r.Caller().Actor(), audit.MemberAdded, about(joined))
}

// invite stores an invitation, or gives the one that the address has another role and token.
func (m *Members) invite(
	ctx context.Context, tx ports.Tx, r access.Reached, db database.Record, fresh member.Invitation, l letter,
) (Added, error) {
	people, invited, err := peopleOf(ctx, tx, db.ID)
	if err != nil {
		return Added{}, err
	}
	for _, i := range invited {
		if i.Email == fresh.Email {
			again, err := m.resend(ctx, tx, r, db, i, fresh.Role, l)
			return Added{Invitation: &again}, err
		}
	}
	if err := member.AdmitInvitation(people, invited, m.base.Clock.Now()); err != nil {
		return Added{}, err
	}
	if err := tx.Invitations().Add(ctx, fresh); err != nil {
		return Added{}, err
	}
	if err := m.post(ctx, tx, db, fresh, l); err != nil {
		return Added{}, err
	}
	return Added{Invitation: &fresh}, m.audit(ctx, tx, r.Caller().Actor(), db, audit.InvitationCreated, fresh)
}

func peopleOf(ctx context.Context, tx ports.Tx, db id.DatabaseID) (members int, invited []member.Invitation, err error) {
	list, err := tx.Members().List(ctx, db)
	if err != nil {
		return 0, nil, err
	}
	invited, err = tx.Invitations().List(ctx, db)
	return len(list), invited, err
}

// letter is a new token, and the mail that takes it to its recipient.
type letter struct {
	hash   token.Hash
	mail   id.MailID
	sealed []byte
}

func (m *Members) newLetter() (letter, error) {
	text, hash := base.NewToken(m.base.Entropy)
	l := letter{hash: hash, mail: base.NewID[id.MailID](m.base.Entropy)}
	sealed, err := m.base.Secrets.Seal([]byte(text), mail.SecretContext(l.mail))
	l.sealed = sealed
	return l, err
}

// post puts the mail of an invitation into the outbox; an unsent one with an older token is withdrawn. FEATURE_NOT_AVAILABLE or
// VALIDATION_ERROR where it could never be sent. RATE_LIMITED where too many went to the address, or from the account, which
// stays locked so that two cannot both take the last place.
func (m *Members) post(ctx context.Context, tx ports.Tx, db database.Record, i member.Invitation, l letter) error {
	if err := m.base.Mailer.Check(i.Email); err != nil {
		return err
	}
	now := m.base.Clock.Now()
	owning, err := tx.Accounts().LockForQuota(ctx, db.AccountID)
	if err != nil {
		return err
	}
	recent, err := tx.Mails().Recent(ctx, owning.ID, i.Email, now.Add(-mail.Window))
	if err != nil {
		return err
	}
	if err := recent.Admit(); err != nil {
		return err
	}
	inviter, err := tx.Accounts().User(ctx, owning.OwnerID)
	if err != nil {
		return err
	}
	if err := tx.Mails().Withdraw(ctx, i.ID, now); err != nil {
		return err
	}
	return tx.Mails().Add(ctx, mail.New(l.mail, mail.Letter{
		Kind:         mail.ToInvite,
		InvitationID: i.ID, AccountID: owning.ID, DatabaseID: db.ID, Recipient: i.Email,
		Inviter: inviter.Name, Database: db.DisplayName, Role: i.Role, ExpiresAt: i.ExpiresAt,
	}, l.sealed, now))
}

// audit adds what happened to an invitation to the activity log; never its token, nor the whole address.
func (m *Members) audit(
	ctx context.Context, tx ports.Tx, by audit.Actor, db database.Record, what audit.Action, i member.Invitation,
) error {
	return m.base.Audit(ctx, tx, db, by, what, audit.Details{
		"invitationId": string(i.ID), "email": i.Masked(), "role": string(i.Role),
	})
}
