package people

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Security is what a person logs in with.
type Security struct {
	HasPassword bool
	HasFactor   bool       // that counts
	Recovery    int        // recovery codes that are left
	SignsOn     *time.Time // since when the person is linked at the issuer; nil: not at all
}

// Security returns what the caller logs in with. UNAUTHORIZED: the caller is no person.
func (p *People) Security(ctx context.Context, c access.Caller) (s Security, err error) {
	if !c.IsPerson() {
		return s, person.ErrNoSession()
	}
	err = p.base.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Accounts().User(ctx, c.Session.UserID)
		if err != nil {
			return err
		}
		s.HasPassword = user.PasswordHash != ""
		if _, s.HasFactor, err = factorOf(ctx, tx, user.ID); err != nil {
			return err
		}
		switch i, is, err := p.signsOn(ctx, tx, user.ID); {
		case err != nil:
			return err
		case is:
			s.SignsOn = &i.CreatedAt
		}
		s.Recovery, err = tx.Credentials().Recovery(ctx, user.ID)
		return err
	})
	return s, err
}

// BeginFactor makes the secret of an authenticator app, which counts once ConfirmFactor has had a code of it. The secret of one
// that does not count yet is replaced. UNAUTHORIZED, LOGIN_REQUIRED as of ChangePassword. VALIDATION_ERROR on "factor": the
// person has one; it has to be removed first.
func (p *People) BeginFactor(ctx context.Context, c access.Caller) (person.Secret, error) {
	if err := p.recent(c); err != nil {
		return nil, err
	}
	f := person.Factor{UserID: c.Session.UserID, CreatedAt: p.base.Clock.Now()}
	secret := person.NewSecret(p.base.Entropy.Seed())
	var err error
	if f.SealedSecret, err = p.base.Secrets.Seal(secret, f.SecretContext()); err != nil {
		return nil, err
	}
	err = p.update(ctx, c, func(ctx context.Context, tx ports.Tx, user account.User) error {
		switch _, counts, err := factorOf(ctx, tx, user.ID); {
		case err != nil:
			return err
		case counts:
			return fault.Invalid("factor", "an authenticator app is set up already: remove it first")
		}
		return tx.Credentials().SetFactor(ctx, f)
	})
	if err != nil {
		return nil, err
	}
	return secret, nil
}

// ConfirmFactor has the authenticator app count from now on, and returns the recovery codes, which are shown once. All other
// sessions end. UNAUTHORIZED, LOGIN_REQUIRED as of ChangePassword. RATE_LIMITED: too many codes were tried. VALIDATION_ERROR on
// "code": it is wrong, or none was asked for.
func (p *People) ConfirmFactor(ctx context.Context, c access.Caller, code string) (codes []string, err error) {
	if err := p.recent(c); err != nil {
		return nil, err
	}
	if err := p.admitProof(ctx, c); err != nil {
		return nil, err
	}
	codes, hashes := p.recovery()
	const note = "An authenticator app was set up: a log-in needs its code from now on."
	err = p.updateTelling(ctx, c, note, func(ctx context.Context, tx ports.Tx, user account.User) error {
		f, counts, err := factorOf(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		right := false
		if !counts && f.UserID != "" {
			if right, err = p.acceptsOf(ctx, tx, f, code); err != nil {
				return err
			}
		}
		if !right {
			return fault.Invalid("code", "is not the code that the authenticator app shows")
		}
		if err := tx.Credentials().SetRecovery(ctx, user.ID, hashes); err != nil {
			return err
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, c.Session.ID, p.base.Clock.Now()); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.FactorAdded, nil)
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// recovery makes new recovery codes.
func (p *People) recovery() (codes []string, hashes []token.Hash) {
	for range person.RecoveryCodes {
		random := p.base.Entropy.Base62(person.RecoveryCharacters)
		codes, hashes = append(codes, person.RecoveryText(random)), append(hashes, token.Of(random))
	}
	return codes, hashes
}

// RenewRecovery returns new recovery codes, which are shown once; those of before work no more. UNAUTHORIZED, LOGIN_REQUIRED as
// of ChangePassword. VALIDATION_ERROR on "factor": there is no authenticator app.
func (p *People) RenewRecovery(ctx context.Context, c access.Caller) ([]string, error) {
	if err := p.recent(c); err != nil {
		return nil, err
	}
	codes, hashes := p.recovery()
	const note = "New recovery codes were made; those of before work no more."
	err := p.updateTelling(ctx, c, note, func(ctx context.Context, tx ports.Tx, user account.User) error {
		switch _, counts, err := factorOf(ctx, tx, user.ID); {
		case err != nil:
			return err
		case !counts:
			return errNoFactor()
		}
		if err := tx.Credentials().SetRecovery(ctx, user.ID, hashes); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.RecoveryRenewed, nil)
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// RemoveFactor removes the authenticator app and the recovery codes. UNAUTHORIZED, LOGIN_REQUIRED as of ChangePassword.
// VALIDATION_ERROR on "factor": there is none.
func (p *People) RemoveFactor(ctx context.Context, c access.Caller) error {
	if err := p.recent(c); err != nil {
		return err
	}
	const note = "The authenticator app was removed: the password suffices to log in."
	return p.updateTelling(ctx, c, note, func(ctx context.Context, tx ports.Tx, user account.User) error {
		switch _, counts, err := factorOf(ctx, tx, user.ID); {
		case err != nil:
			return err
		case !counts:
			return errNoFactor()
		}
		if err := tx.Credentials().RemoveFactor(ctx, user.ID); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.FactorRemoved, nil)
	})
}

func errNoFactor() error { return fault.Invalid("factor", "there is no authenticator app") }
