package people

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// AskReset sends a person a link to choose another password. The answer is the same, after the same time, for an address that is
// nobody's, or that was sent too many mails: then nothing is sent. The link of before works no more.
//
// FEATURE_NOT_AVAILABLE: the installation sends no mails, or has no page for it, or people have to sign on. VALIDATION_ERROR on
// "email": it is no address. RATE_LIMITED: too many attempts from the address of the client.
func (p *People) AskReset(ctx context.Context, email string, from Client) error {
	if err := p.mayPass(); err != nil {
		return err
	}
	if p.base.Pages.Reset == (mail.Link{}) {
		return fault.New(fault.FeatureNotAvailable, "this installation has no page to choose another password on; ask its operator")
	}
	email, invalid := account.ValidateEmail(email)
	if _, err := p.admit(ctx, from, email); err != nil {
		return err
	}
	if invalid != nil {
		return invalid
	}
	if err := p.base.Mailer.Check(email); err != nil {
		return err
	}
	wait := time.NewTimer(p.base.ResetPace)
	defer wait.Stop()
	if err := p.sendReset(ctx, email); err != nil && !errors.Is(err, ports.ErrNoRow) && !fault.Has(err, fault.RateLimited) {
		return err
	}
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendReset returns ErrNoRow for an address that is nobody's, and RATE_LIMITED for one that was sent too many mails.
func (p *People) sendReset(ctx context.Context, email string) error {
	text, hash := base.NewToken(p.base.Entropy)
	now := p.base.Clock.Now()
	return p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
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
		recent, err := tx.Mails().Recent(ctx, of.ID, email, now.Add(-mail.Window))
		if err == nil {
			err = recent.Admit()
		}
		if err != nil {
			return err
		}
		r := person.NewReset(user.ID, user.PasswordHash != "", hash, now)
		if err := tx.Credentials().SetReset(ctx, r); err != nil {
			return err
		}
		letter := mail.Letter{Kind: mail.ToReset, AccountID: of.ID, Recipient: email, ExpiresAt: r.ExpiresAt}
		return p.post(ctx, tx, letter, text)
	})
}

// Reset gives the person of a link another password, and ends all sessions. A second factor stays. The link works once. What it
// returns the device keeps, as Entered.Device: all others are those of strangers from now on.
//
// UNAUTHORIZED, the same for a link that is unknown, used, replaced or too old. VALIDATION_ERROR on "password". RATE_LIMITED: too
// many attempts from the address. SERVER_BUSY: too many passwords are being hashed. FEATURE_NOT_AVAILABLE as of LogIn.
func (p *People) Reset(ctx context.Context, presented, password string, from Client) (device string, err error) {
	if err := p.mayPass(); err != nil {
		return "", err
	}
	d, err := p.admit(ctx, from, "")
	if err != nil {
		return "", err
	}
	hash, ok := token.Parse(presented)
	if !ok {
		return "", person.ErrNoReset()
	}
	asked, err := p.asked(ctx, hash)
	if err != nil {
		return "", err
	}
	if err := account.ValidatePassword(password); err != nil {
		return "", err
	}
	stored, err := p.hash(ctx, asked.UserID, password)
	if err != nil {
		return "", err
	}
	now := p.base.Clock.Now()
	err = p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Credentials().Lock(ctx, asked.UserID)
		if err != nil {
			return err
		}
		if err := p.useUp(ctx, tx, hash, user.ID); err != nil {
			return err
		}
		if err := tx.Credentials().SetPassword(ctx, user.ID, stored); err != nil {
			return err
		}
		user.PasswordHash = stored
		if device, err = p.remember(d, user); err != nil {
			return err
		}
		if err := tx.Sessions().EndAll(ctx, user.ID, "", now); err != nil {
			return err
		}
		of, err := tx.Accounts().OfOwner(ctx, user.ID)
		if err != nil {
			return err
		}
		const note = "The password was reset by a link in a mail."
		if err := p.tell(ctx, tx, mail.ToTell, of.ID, user.Email, note); err != nil {
			return err
		}
		return p.base.Audit(ctx, tx, database.Record{AccountID: of.ID}, audit.ByUser(user.ID), audit.PasswordReset,
			audit.Details{"client": from.Address.Unmap().String()})
	})
	if err != nil {
		return "", base.NotFound(err, person.ErrNoReset())
	}
	return device, nil
}

// asked is the link of a token that works.
func (p *People) asked(ctx context.Context, hash token.Hash) (person.Reset, error) {
	r, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (person.Reset, error) {
		return tx.Credentials().ResetByToken(ctx, hash)
	})
	if err == nil && !r.Works(p.base.Clock.Now()) {
		err = ports.ErrNoRow
	}
	return r, base.NotFound(err, person.ErrNoReset())
}

// useUp removes the link of a token that still works, and is a person's, who is locked.
func (p *People) useUp(ctx context.Context, tx ports.Tx, hash token.Hash, of id.UserID) error {
	r, err := tx.Credentials().ResetByToken(ctx, hash)
	if err == nil && (r.UserID != of || !r.Works(p.base.Clock.Now())) {
		err = ports.ErrNoRow
	}
	if err != nil {
		return base.NotFound(err, person.ErrNoReset())
	}
	return tx.Credentials().RemoveReset(ctx, of)
}

// LogInByLink begins a session by a link that the operator has made, also where people have to sign on and the issuer is away.
// Where the person has a second factor, the session awaits it. The link works once, and the person is told.
//
// UNAUTHORIZED, the same for a link that is unknown, used, replaced or too old, or was asked for by mail. RATE_LIMITED: too many
// attempts from the address.
func (p *People) LogInByLink(ctx context.Context, presented string, from Client) (Entered, error) {
	d, err := p.admit(ctx, from, "")
	if err != nil {
		return Entered{}, err
	}
	hash, ok := token.Parse(presented)
	if !ok {
		return Entered{}, person.ErrNoReset()
	}
	asked, err := p.asked(ctx, hash)
	switch {
	case err != nil:
		return Entered{}, err
	case !asked.ByOperator:
		return Entered{}, person.ErrNoReset()
	}
	return p.enter(ctx, asked.UserID, person.ByPassword, from, d, func(
		ctx context.Context, tx ports.Tx, user account.User,
	) (opening, error) {
		if err := p.useUp(ctx, tx, hash, user.ID); err != nil {
			return opening{}, err
		}
		of, err := tx.Accounts().OfOwner(ctx, user.ID)
		if err != nil {
			return opening{}, base.NotFound(err, person.ErrNoReset())
		}
		const note = "Somebody logged in with a link that the operator of the service made."
		if err := p.tell(ctx, tx, mail.ToTell, of.ID, user.Email, note); err != nil {
			return opening{}, err
		}
		_, counts, err := factorOf(ctx, tx, user.ID)
		return opening{awaits: counts}, err
	})
}

// hash hashes a password of a person when it is its turn. SERVER_BUSY, RATE_LIMITED.
func (p *People) hash(ctx context.Context, of id.UserID, password string) (string, error) {
	t := turnOf(of)
	release, err := p.base.Hashing.Enter(ctx, t.of, t.among)
	if err != nil {
		return "", err
	}
	defer release()
	return p.base.Passwords.Hash(password, p.base.Entropy.Salt())
}
