package people

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// LogOut ends the session of a token, whatever its status. It is no error if there is none.
func (p *People) LogOut(ctx context.Context, presented string) error {
	hash, ok := token.Parse(presented)
	if !ok {
		return nil
	}
	found, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (ports.SessionEntry, error) {
		return tx.Sessions().ByToken(ctx, hash)
	})
	if err != nil {
		return base.NotFound(err, nil)
	}
	return p.end(ctx, found.Session.UserID, found.Session.ID)
}

// end ends one session of a person; one that has ended, or is another's, is left alone.
func (p *People) end(ctx context.Context, of id.UserID, session id.SessionID) error {
	return p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		in, err := tx.Sessions().Lock(ctx, session)
		if err != nil || in.UserID != of {
			return base.NotFound(err, nil)
		}
		closed, err := in.Closed(p.base.Clock.Now())
		if fault.Has(err, fault.Unauthorized) {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.Sessions().Save(ctx, closed)
	})
}

// Sessions lists where the caller is logged in, the session that was used last first; those whose time is over are left out.
// UNAUTHORIZED: the caller is no person.
func (p *People) Sessions(ctx context.Context, c access.Caller) ([]person.Session, error) {
	if !c.IsPerson() {
		return nil, person.ErrNoSession()
	}
	return p.sessionsOf(ctx, c.Session.UserID)
}

func (p *People) sessionsOf(ctx context.Context, user id.UserID) (open []person.Session, err error) {
	all, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) ([]person.Session, error) {
		return tx.Sessions().Of(ctx, user)
	})
	for _, s := range all {
		if s.TokenHash = nil; s.At(p.base.Clock.Now()).Status != person.Ended {
			open = append(open, s)
		}
	}
	return open, err
}

// EndSession ends one of the caller's sessions. Nothing happens where it is none, or has ended. UNAUTHORIZED: the caller is no
// person.
func (p *People) EndSession(ctx context.Context, c access.Caller, session id.SessionID) error {
	if !c.IsPerson() {
		return person.ErrNoSession()
	}
	return p.end(ctx, c.Session.UserID, session)
}

// EndOthers ends every session of the caller but the one that asks. UNAUTHORIZED: the caller is no person.
func (p *People) EndOthers(ctx context.Context, c access.Caller) error {
	return p.update(ctx, c, func(ctx context.Context, tx ports.Tx, _ account.User) error {
		if err := tx.Sessions().EndAll(ctx, c.Session.UserID, c.Session.ID, p.base.Clock.Now()); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.SessionsEnded, nil)
	})
}

// ChangePassword gives the caller another password, and ends all other sessions and a link to choose one. What it returns the
// device keeps, as Entered.Device: all others are those of strangers from now on. UNAUTHORIZED: the caller is no person, or
// the session has ended. LOGIN_REQUIRED: the last proof is too long ago. VALIDATION_ERROR on "password". RATE_LIMITED,
// SERVER_BUSY: too many passwords are being hashed.
func (p *People) ChangePassword(ctx context.Context, c access.Caller, password, device string) (string, error) {
	if err := p.recent(c); err != nil {
		return "", err
	}
	if err := account.ValidatePassword(password); err != nil {
		return "", err
	}
	hash, err := p.hash(ctx, c.Session.UserID, password)
	if err != nil {
		return "", err
	}
	d, err := p.recognize(ctx, device)
	if err != nil {
		return "", err
	}
	err = p.updateTelling(ctx, c, "The password was changed.", func(ctx context.Context, tx ports.Tx, user account.User) error {
		if err := tx.Credentials().RemoveReset(ctx, user.ID); err != nil {
			return err
		}
		if err := tx.Credentials().SetPassword(ctx, user.ID, hash); err != nil {
			return err
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, c.Session.ID, p.base.Clock.Now()); err != nil {
			return err
		}
		user.PasswordHash = hash
		var err error
		if device, err = p.remember(d, user); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.PasswordChanged, nil)
	})
	if err != nil {
		return "", err
	}
	return device, nil
}

// recent returns UNAUTHORIZED where the caller is no person, and LOGIN_REQUIRED where the last proof is too long ago.
func (p *People) recent(c access.Caller) error {
	if !c.IsPerson() {
		return person.ErrNoSession()
	}
	return c.Session.RequireRecent(p.base.Clock.Now())
}

// update runs fn in a transaction that has locked the person, as long as the session is open. UNAUTHORIZED otherwise.
func (p *People) update(
	ctx context.Context, c access.Caller, fn func(ctx context.Context, tx ports.Tx, user account.User) error,
) error {
	if !c.IsPerson() {
		return person.ErrNoSession()
	}
	err := p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Credentials().Lock(ctx, c.Session.UserID)
		if err != nil {
			return err
		}
		if err := c.StillIn(ctx, tx, p.base.Clock); err != nil {
			return err
		}
		return fn(ctx, tx, user)
	})
	return base.NotFound(err, person.ErrNoSession())
}

// updateTelling is update, with a notice to the person.
func (p *People) updateTelling(
	ctx context.Context, c access.Caller, note string, fn func(ctx context.Context, tx ports.Tx, user account.User) error,
) error {
	return p.update(ctx, c, func(ctx context.Context, tx ports.Tx, user account.User) error {
		if err := fn(ctx, tx, user); err != nil {
			return err
		}
		return p.tell(ctx, tx, mail.ToTell, c.Account.ID, user.Email, note)
	})
}
