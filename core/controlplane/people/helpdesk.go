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

// LinkUser returns the token of a link with which a person chooses a password, the first one too, and when it ends. The link of
// before works no more. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) LinkUser(ctx context.Context, email string) (link string, ends time.Time, err error) {
	text, hash := base.NewToken(h.people.base.Entropy)
	r := person.Reset{TokenHash: hash[:], CreatedAt: h.people.base.Clock.Now()}
	err = h.update(ctx, email, audit.LinkMade, func(ctx context.Context, tx ports.Tx, user account.User, _ id.AccountID) error {
		r.UserID = user.ID
		return tx.Credentials().SetReset(ctx, r)
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return text, r.Ends(), nil
}

// ResetFactors removes the authenticator app, the recovery codes and the passkeys of a person who has lost them, ends all
// sessions and a link to choose a password, and tells the person. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) ResetFactors(ctx context.Context, email string) error {
	const note = "The operator of the service removed your authenticator app and passkeys: your password suffices to log in."
	return h.update(ctx, email, audit.FactorsReset, func(
		ctx context.Context, tx ports.Tx, user account.User, of id.AccountID,
	) error {
		if err := tx.Credentials().RemoveFactor(ctx, user.ID); err != nil {
			return err
		}
		if err := tx.Credentials().RemoveReset(ctx, user.ID); err != nil {
			return err
		}
		list, err := tx.Passkeys().Of(ctx, user.ID)
		if err != nil {
			return err
		}
		for _, k := range list {
			if err := tx.Passkeys().Remove(ctx, user.ID, k.ID); err != nil {
				return err
			}
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, "", h.people.base.Clock.Now()); err != nil {
			return err
		}
		return h.people.tell(ctx, tx, mail.ToTell, of, user.Email, note)
	})
}

// update runs fn in a transaction that has locked a person, and logs what was done in the account that the person owns.
func (h *Helpdesk) update(
	ctx context.Context, email string, what audit.Action,
	fn func(ctx context.Context, tx ports.Tx, user account.User, of id.AccountID) error,
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
		if err := fn(ctx, tx, user, of.ID); err != nil {
			return err
		}
		return b.Audit(ctx, tx, database.Record{AccountID: of.ID}, audit.Operator, what, audit.Details{"userId": string(user.ID)})
	})
	return base.NotFound(err, fault.Invalid("email", "is no user's"))
}

// LogInUser opens a session of a person without any proof, for a development host. VALIDATION_ERROR on "email": it is nobody's.
func (h *Helpdesk) LogInUser(ctx context.Context, email string, from Client) (Entered, error) {
	user, err := ports.Read(ctx, h.people.base.Store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
		return tx.Accounts().UserByEmail(ctx, email)
	})
	if err != nil {
		return Entered{}, base.NotFound(err, fault.Invalid("email", "is no user's"))
	}
	return h.people.enter(ctx, user, from, device{}, func(context.Context, ports.Tx, account.User) (bool, error) { return false, nil })
}
