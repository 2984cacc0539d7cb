package people

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// GiveFactor completes a log-in that awaits a second factor. The code is one of the authenticator app, or a recovery code. The
// session gets another token.
//
// UNAUTHORIZED: the session is none that awaits a factor, or the code is wrong; person.MaxFactorTries of these end the log-in.
// RATE_LIMITED: too many attempts from the address or for the person.
func (p *People) GiveFactor(ctx context.Context, presented, code string, from Client) (Entered, error) {
	d, err := p.admit(ctx, from, "")
	if err != nil {
		return Entered{}, err
	}
	hash, ok := token.Parse(presented)
	if !ok {
		return Entered{}, person.ErrNoSession()
	}
	found, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (ports.SessionEntry, error) {
		return tx.Sessions().ByToken(ctx, hash)
	})
	switch {
	case err != nil:
		return Entered{}, base.NotFound(err, person.ErrNoSession())
	case found.Session.At(p.base.Clock.Now()).Status != person.AwaitsFactor:
		return Entered{}, person.ErrNoSession()
	}
	if err := p.admitGuess(ctx, d, found.User.Email); err != nil {
		return Entered{}, err
	}
	if _, is := person.ParseRecovery(code); !is {
		if err := p.admitCode(ctx, d, found.User.Email); err != nil {
			return Entered{}, err
		}
	}
	wrong := person.ErrLogIn()
	in, err := p.prove(ctx, found.Session, wrong, func(ctx context.Context, tx ports.Tx, user account.User) (person.Means, error) {
		return byCode(p.accepts(ctx, tx, user.ID, code))
	}, func(ctx context.Context, tx ports.Tx, user account.User, in *Entered) error {
		if gets := in.Session; gets.Issuer != "" {
			if err := p.link(ctx, tx, user, person.Identity{Issuer: gets.Issuer, Subject: gets.Subject}); err != nil {
				return err
			}
		}
		return p.opened(ctx, tx, user, from, d, in)
	})
	return in, p.doubted(ctx, err, from.RequestID)
}

// Proof is how a person who is logged in proves once more who they are: by the password and, where there is a second factor, by a
// code as well.
type Proof struct{ Password, Code string }

// mayProve admits a proof by what a person has here: a password, a code or a passkey.
func (p *People) mayProve(ctx context.Context, c access.Caller, by person.Means) error {
	if !c.IsPerson() {
		return person.ErrNoSession()
	}
	if console := c.Operator && by == person.ByPasskey; !console { // which wants a passkey, whatever people log in with
		if err := p.mayPass(); err != nil {
			return err
		}
	}
	return p.admitProof(ctx, c)
}

// ProveAgain makes a session recent again, which what cannot be undone or shows a secret needs. The session gets another token.
// UNAUTHORIZED: something is wrong; person.MaxFactorTries of these end the session. RATE_LIMITED: too many were tried in the
// session. SERVER_BUSY: too many passwords are being hashed. FEATURE_NOT_AVAILABLE as of LogIn.
func (p *People) ProveAgain(ctx context.Context, c access.Caller, by Proof) (Entered, error) {
	if err := p.mayProve(ctx, c, person.ByPassword); err != nil {
		return Entered{}, err
	}
	user, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
		return tx.Accounts().User(ctx, c.Session.UserID)
	})
	if err != nil {
		return Entered{}, base.NotFound(err, person.ErrNoSession())
	}
	right, err := p.matches(ctx, turnOf(user.ID), user.PasswordHash, by.Password)
	if err != nil {
		return Entered{}, err
	}
	return p.prove(ctx, c.Session, person.ErrLogIn(), func(
		ctx context.Context, tx ports.Tx, now account.User,
	) (person.Means, error) {
		if !right || now.PasswordHash != user.PasswordHash {
			return "", nil
		}
		_, counts, err := factorOf(ctx, tx, now.ID)
		if err != nil || !counts {
			return person.ByPassword, err
		}
		return byCode(p.accepts(ctx, tx, now.ID, by.Code))
	}, nothing)
}

// prove stores what a proof makes of a session: open, with another token, or one more miss, which is what wrong says. Right
// returns by what it was proved; nothing where it was not.
func (p *People) prove(
	ctx context.Context, of person.Session, wrong error, right func(context.Context, ports.Tx, account.User) (person.Means, error),
	then func(context.Context, ports.Tx, account.User, *Entered) error,
) (made Entered, err error) {
	text, hash := base.NewToken(p.base.Entropy)
	err = p.judge(ctx, of, wrong, right, func(
		ctx context.Context, tx ports.Tx, user account.User, in person.Session, by person.Means,
	) error {
		next, err := in.Proved(hash, by, p.base.Clock.Now())
		if err != nil {
			return err
		}
		if err := tx.Sessions().Save(ctx, next); err != nil {
			return err
		}
		made = Entered{Session: next, Token: text}
		return then(ctx, tx, user, &made)
	})
	if err != nil {
		return Entered{}, err
	}
	return made, nil
}

// nothing is what is stored with a proof that changes the session alone.
func nothing(context.Context, ports.Tx, account.User, *Entered) error { return nil }

// judge does what follows where something is right in a session, or stores one more miss and returns what is wrong.
func (p *People) judge(
	ctx context.Context, of person.Session, wrong error, right func(context.Context, ports.Tx, account.User) (person.Means, error),
	then func(context.Context, ports.Tx, account.User, person.Session, person.Means) error,
) error {
	var by person.Means
	err := p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Credentials().Lock(ctx, of.UserID)
		if err != nil {
			return err
		}
		in, err := tx.Sessions().Lock(ctx, of.ID)
		if err != nil {
			return err
		}
		if in.Status != of.Status { // somebody else was quicker
			return person.ErrNoSession()
		}
		switch by, err = right(ctx, tx, user); {
		case err != nil:
			return err
		case by != "":
			return then(ctx, tx, user, in, by)
		}
		missed, err := in.Missed(p.base.Clock.Now())
		if err != nil {
			return err
		}
		return tx.Sessions().Save(ctx, missed)
	})
	switch {
	case err != nil:
		return base.NotFound(err, person.ErrNoSession())
	case by == "":
		return wrong
	}
	return nil
}

// byCode is by what a code proves, if it is right.
func byCode(right bool, err error) (person.Means, error) {
	if !right {
		return "", err
	}
	return person.ByCode, err
}

// accepts reports whether a code is right, and uses it up. The person is locked.
func (p *People) accepts(ctx context.Context, tx ports.Tx, user id.UserID, code string) (bool, error) {
	f, counts, err := factorOf(ctx, tx, user)
	if err != nil || !counts {
		return false, err
	}
	if recovery, is := person.ParseRecovery(code); is {
		err := tx.Credentials().UseRecovery(ctx, user, recovery)
		if errors.Is(err, ports.ErrNoRow) {
			return false, nil
		}
		return err == nil, err
	}
	return p.acceptsOf(ctx, tx, f, code)
}

// acceptsOf is accepts for a code of the authenticator app.
func (p *People) acceptsOf(ctx context.Context, tx ports.Tx, f person.Factor, code string) (bool, error) {
	secret, err := p.base.Secrets.Open(f.SealedSecret, f.SecretContext())
	if err != nil {
		return false, err
	}
	used, right := f.Accept(secret, code, p.base.Clock.Now())
	if !right {
		return false, nil
	}
	return true, tx.Credentials().SaveFactor(ctx, used.Confirmed(p.base.Clock.Now()))
}
