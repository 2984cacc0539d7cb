package people

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Helpdesk is what the people who run the service do for those who cannot log in. It does not authenticate.
type Helpdesk struct{ people *People }

// Helpdesk returns that of the same people.
func (p *People) Helpdesk() *Helpdesk { return &Helpdesk{p} }

// Link is a link with which a person logs in (LogInByLink) or chooses a password (Reset), the first one too.
type Link struct {
	Token  string
	EndsAt time.Time
	Mailed bool // it is sent to the person as well
}

// LinkUser makes a link for a person. It works once, and the one of before no more. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) LinkUser(ctx context.Context, email string) (Link, error) {
	return h.link(ctx, email, false)
}

// WelcomeUser is LinkUser for somebody who is new. Where the installation sends mails, the link is sent.
func (h *Helpdesk) WelcomeUser(ctx context.Context, email string) (Link, error) {
	return h.link(ctx, email, true)
}

func (h *Helpdesk) link(ctx context.Context, email string, post bool) (made Link, err error) {
	b := h.people.base
	text, hash := base.NewToken(b.Entropy)
	err = h.update(ctx, email, audit.LinkMade, func(
		ctx context.Context, tx ports.Tx, user account.User, of id.AccountID,
	) (bool, error) {
		r := person.NewReset(user.ID, user.PasswordHash != "", hash, b.Clock.Now())
		r.ByOperator = true
		made = Link{Token: text, EndsAt: r.ExpiresAt, Mailed: post && b.Mailer.Check(user.Email) == nil}
		if err := tx.Credentials().SetReset(ctx, r); err != nil || !made.Mailed {
			return true, err
		}
		letter := mail.Letter{Kind: mail.ToWelcome, AccountID: of, Recipient: user.Email, ExpiresAt: r.ExpiresAt}
		return true, h.people.post(ctx, tx, letter, text)
	})
	if err != nil {
		return Link{}, err
	}
	return made, nil
}

// UserSessions lists where a person is logged in, as People.Sessions does. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) UserSessions(ctx context.Context, email string) (open []person.Session, err error) {
	if email, err = account.ValidateEmail(email); err != nil {
		return nil, err
	}
	user, err := ports.Read(ctx, h.people.base.Store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
		return tx.Accounts().UserByEmail(ctx, email)
	})
	if err != nil {
		return nil, base.NotFound(err, errNobody())
	}
	return h.people.sessionsOf(ctx, user.ID)
}

// EndSessions ends all sessions of a person, and returns how many there were. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) EndSessions(ctx context.Context, email string) (ended int, err error) {
	now := h.people.base.Clock.Now()
	err = h.update(ctx, email, audit.AllSessionsEnded, func(
		ctx context.Context, tx ports.Tx, user account.User, _ id.AccountID,
	) (bool, error) {
		all, err := tx.Sessions().Of(ctx, user.ID)
		if ended = len(all); err != nil || ended == 0 {
			return false, err
		}
		return true, tx.Sessions().EndAll(ctx, user.ID, "", now)
	})
	return ended, err
}

// ResetFactors removes the authenticator app, the recovery codes and the passkeys of a person who has lost them, ends all
// sessions and a link to choose a password, and tells the person. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) ResetFactors(ctx context.Context, email string) error {
	const note = "The operator of the service removed your authenticator app and passkeys: your password suffices to log in."
	return h.update(ctx, email, audit.FactorsReset, func(
		ctx context.Context, tx ports.Tx, user account.User, of id.AccountID,
	) (bool, error) {
		if err := tx.Credentials().RemoveFactor(ctx, user.ID); err != nil {
			return false, err
		}
		if err := tx.Credentials().RemoveReset(ctx, user.ID); err != nil {
			return false, err
		}
		list, err := tx.Passkeys().Of(ctx, user.ID)
		if err != nil {
			return false, err
		}
		for _, k := range list {
			if err := tx.Passkeys().Remove(ctx, user.ID, k.ID); err != nil {
				return false, err
			}
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, "", h.people.base.Clock.Now()); err != nil {
			return false, err
		}
		return true, h.people.tell(ctx, tx, mail.ToTell, of, user.Email, note)
	})
}

// UnlinkSignOn forgets by what subject an issuer knows a person, for whom it has another one by now: the next sign-on with the
// person's address counts again. It ends all sessions, and tells the person. VALIDATION_ERROR on "email": it is nobody's, or that
// of somebody who is not linked.
func (h *Helpdesk) UnlinkSignOn(ctx context.Context, email string) error {
	const note = "The operator of the service ended the link with your sign-on: the next one makes it again."
	return h.update(ctx, email, audit.SignOnUnlinked, func(
		ctx context.Context, tx ports.Tx, user account.User, of id.AccountID,
	) (bool, error) {
		if err := tx.Identities().Remove(ctx, user.ID); err != nil {
			return false, base.NotFound(err, fault.Invalid("email", "is not linked with a sign-on"))
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, "", h.people.base.Clock.Now()); err != nil {
			return false, err
		}
		return true, h.people.tell(ctx, tx, mail.ToTell, of, user.Email, note)
	})
}

// update runs fn in a transaction that has locked a person, and logs what was done, if anything was, in the account that the
// person owns.
func (h *Helpdesk) update(
	ctx context.Context, email string, what audit.Action,
	fn func(ctx context.Context, tx ports.Tx, user account.User, of id.AccountID) (done bool, err error),
) error {
	email, err := account.ValidateEmail(email)
	if err != nil {
		return err
	}
	b := h.people.base
	err = b.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Accounts().UserByEmail(ctx, email)
		if err != nil {
			return err
		}
		if user, err = tx.Credentials().Lock(ctx, user.ID); err != nil {
			return err
		}
		of, err := tx.Accounts().OfOwner(ctx, user.ID)
		if err != nil {
			return err
		}
		if done, err := fn(ctx, tx, user, of.ID); err != nil || !done {
			return err
		}
		return b.Audit(ctx, tx, database.Record{AccountID: of.ID}, audit.Operator, what, audit.Details{"userId": string(user.ID)})
	})
	return base.NotFound(err, errNobody())
}

func errNobody() error { return fault.Invalid("email", "is no user's") }
