package members

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

// Resend gives an invitation that is open or expired a new token and seven new days, and mails it; the old token is worth
// nothing, and its mail is withdrawn where it was not sent yet. INVITATION_NOT_FOUND; RATE_LIMITED, MEMBER_CONFLICT and
// DATABASE_STATE_CONFLICT as for Add; further errors as for List.
func (m *Members) Resend(ctx context.Context, r access.Reached, of id.InvitationID) (again member.Invitation, err error) {
	if err := m.mayInvite(ctx, r); err != nil {
		return again, err
	}
	letter, err := m.newLetter()
	if err != nil {
		return again, err
	}
	err = m.update(ctx, r, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		if _, err := db.Status.Decide(database.Configure); err != nil {
			return err
		}
		stored, err := tx.Invitations().Get(ctx, db.ID, of)
		if err != nil {
			return base.NotFound(err, member.ErrNotFound())
		}
		again, err = m.resend(ctx, tx, r, db, stored, stored.Role, letter)
		return err
	})
	return again, err
}

// resend stores the invitation with another token. One that has expired needs room again.
func (m *Members) resend(
	ctx context.Context, tx ports.Tx, r access.Reached, db database.Record, i member.Invitation, role account.Standing, l letter,
) (member.Invitation, error) {
	now := m.base.Clock.Now()
	again, err := i.Resent(role, l.hash, now)
	if err != nil {
		return i, err
	}
	if i.At(now).Status != member.Open {
		people, invited, err := peopleOf(ctx, tx, db.ID)
		if err != nil {
			return i, err
		}
		if err := member.AdmitInvitation(people, invited, now); err != nil {
			return i, err
		}
	}
	if err := tx.Invitations().Save(ctx, again); err != nil {
		return i, base.NotFound(err, member.ErrNotFound())
	}
	if err := m.post(ctx, tx, db, again, l); err != nil {
		return i, err
	}
	return again, m.audit(ctx, tx, r.Caller().Actor(), db, audit.InvitationResent, again)
}

// Revoke deletes an invitation: its token no longer works, and its mail is withdrawn if it was not sent yet.
// INVITATION_NOT_FOUND; further errors as for List.
func (m *Members) Revoke(ctx context.Context, r access.Reached, of id.InvitationID) error {
	return m.update(ctx, r, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		i, err := tx.Invitations().Get(ctx, db.ID, of)
		if err != nil {
			return base.NotFound(err, member.ErrNotFound())
		}
		return m.revoke(ctx, tx, r.Caller().Actor(), db, i)
	})
}

func (m *Members) revoke(ctx context.Context, tx ports.Tx, by audit.Actor, db database.Record, i member.Invitation) error {
	revoked, err := i.Revoked(m.base.Clock.Now())
	if err != nil {
		return err
	}
	if err := m.end(ctx, tx, revoked); err != nil {
		return err
	}
	return m.audit(ctx, tx, by, db, audit.InvitationRevoked, revoked)
}

// Withdraw ends every open invitation to a database that is locked, as Revoke does for one.
func (m *Members) Withdraw(ctx context.Context, tx ports.Tx, by audit.Actor, db database.Record) error {
	list, err := m.invitations(ctx, tx, db.ID)
	for _, i := range list {
		if err == nil && i.Status == member.Open {
			err = m.revoke(ctx, tx, by, db, i)
		}
	}
	return err
}

// end stores an invitation that has ended, and withdraws its mail.
func (m *Members) end(ctx context.Context, tx ports.Tx, i member.Invitation) error {
	if err := tx.Invitations().Save(ctx, i); err != nil {
		return base.NotFound(err, member.ErrNotFound())
	}
	return tx.Mails().Withdraw(ctx, i.ID, m.base.Clock.Now())
}

// registerRounds stores the end of invitations whose time is over, and forgets those that ended long ago. A token that has
// expired is refused also before.
func (m *Members) registerRounds() {
	rounds.Register(m.base.Rounds, rounds.Task{Name: "invitations", Every: base.RoundEvery, Do: m.endOverdue})
}

func (m *Members) endOverdue(ctx context.Context, now time.Time) error {
	overdue, err := ports.Read(ctx, m.base.Store, func(ctx context.Context, tx ports.Tx) ([]member.Invitation, error) {
		return tx.Invitations().Overdue(ctx, now, base.RoundBatch)
	})
	for _, i := range overdue {
		err = errors.Join(err, m.base.UnlessSettled(ctx, "invitation.overdue", i.DatabaseID, m.expire(ctx, now, i)))
	}
	return errors.Join(err, m.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Invitations().Forget(ctx, now.Add(-member.Kept), base.RoundBatch)
	}))
}

func (m *Members) expire(ctx context.Context, now time.Time, overdue member.Invitation) error {
	return m.base.UpdateDatabase(ctx, overdue.DatabaseID, func(ctx context.Context, tx ports.Tx, db database.Record) error {
		i, err := tx.Invitations().Get(ctx, db.ID, overdue.ID)
		if err != nil {
			return err
		}
		expired := i.At(now)
		if i.Status != member.Open || expired.Status != member.Expired {
			return base.ErrSettled
		}
		if err := m.end(ctx, tx, expired); err != nil {
			return err
		}
		return m.audit(ctx, tx, audit.System, db, audit.InvitationExpired, expired)
	})
}
