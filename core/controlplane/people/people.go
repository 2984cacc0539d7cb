// Package people is how people log in, and what they log in with.
package people

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// People logs people in and out, and manages their sessions and second factors.
type People struct {
	base *base.Base
	// nobody is a hash that is compared where there is no person, or the person has no password: so a refusal takes as long.
	nobody func() (string, error)
}

const (
	// kept is how long a session stays stored after its end.
	kept = 24 * time.Hour
	// forgotten is how many rows of a kind a round forgets: more than some hundred people who log in as often as they may leave.
	forgotten = 1000
)

// New makes the use cases, and registers their periodic task.
func New(p *base.Base) *People {
	rounds.Register(p.Rounds, rounds.Task{
		Name: "old sessions", Every: base.RoundEvery, Work: brake.Destroys,
		Do: func(ctx context.Context, now time.Time) error {
			return p.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
				if err := tx.Passkeys().Forget(ctx, now, forgotten); err != nil {
					return err
				}
				return tx.Sessions().Forget(ctx, now.Add(-kept), forgotten)
			})
		},
	})
	return &People{base: p, nobody: sync.OnceValues(func() (string, error) {
		return p.Passwords.Hash(p.Entropy.Base62(token.Characters), p.Entropy.Salt())
	})}
}

// Client is where a request of somebody who is not logged in comes from.
type Client struct {
	Address   netip.Addr
	Agent     string // what the browser says of itself
	Device    string // what it keeps of an earlier log-in, see Entered; empty if nothing
	RequestID string
}

// Entered is a session with its token, which is known only here: it goes into a cookie.
type Entered struct {
	Session person.Session
	Token   string
	// Device goes into a cookie that lives for person.DeviceLife, whatever happens to the session, and comes back as Client.Device:
	// strangers cannot keep its person from logging in with it. It is empty where the one that the browser has remains.
	Device string
}

// mayPass returns FEATURE_NOT_AVAILABLE for a way in that passes by the issuer, where people have to sign on.
func (p *People) mayPass() error {
	if p.base.SignOnRules.Required {
		return p.base.SignOnRules.ErrRequired()
	}
	return nil
}

// Credentials are what somebody logs in with.
type Credentials struct{ Email, Password string }

// LogIn begins a session. Where the person has a second factor, the session awaits it, and reaches nothing before.
//
// UNAUTHORIZED, the same after the same time whatever is wrong: no such person, no password, another password. RATE_LIMITED: too
// many attempts from the address or for the person, whether there is one or not. SERVER_BUSY: too many passwords are being
// hashed. Strangers cause neither on a device on which the person has logged in since the password was chosen.
// FEATURE_NOT_AVAILABLE: people have to sign on.
func (p *People) LogIn(ctx context.Context, c Credentials, from Client) (Entered, error) {
	if err := p.mayPass(); err != nil {
		return Entered{}, err
	}
	email, invalid := account.ValidateEmail(c.Email)
	d, err := p.admit(ctx, from, email)
	if err != nil {
		return Entered{}, err
	}
	if invalid != nil {
		return Entered{}, person.ErrLogIn()
	}
	if err := p.admitGuess(ctx, d, email); err != nil {
		return Entered{}, err
	}
	user, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
		return tx.Accounts().UserByEmail(ctx, email)
	})
	if err != nil && !errors.Is(err, ports.ErrNoRow) {
		return Entered{}, err
	}
	of := turnOf(user.ID)
	if !d.isOf(user.ID) {
		of = turnFrom(from)
	}
	right, err := p.matches(ctx, of, user.PasswordHash, c.Password)
	switch {
	case err != nil:
		return Entered{}, err
	case !right:
		return Entered{}, person.ErrLogIn()
	}
	return p.enter(ctx, user.ID, person.ByPassword, from, d, func(
		ctx context.Context, tx ports.Tx, now account.User,
	) (opening, error) {
		if now.PasswordHash != user.PasswordHash { // it is another one by now
			return opening{}, person.ErrLogIn()
		}
		_, counts, err := factorOf(ctx, tx, user.ID)
		return opening{awaits: counts}, err
	})
}

// turn is whose turn it is to have a password hashed, and among whom.
type turn struct {
	of    id.AccountID
	among id.ServerID
}

func turnOf(user id.UserID) turn { return turn{id.AccountID(user), base.ThisProcess} }

func turnFrom(c Client) turn { return turn{id.AccountID(ratelimit.Source(c.Address)), base.Strangers} }

// matches compares a password with a hash. One without a hash never matches, after the same time. SERVER_BUSY, RATE_LIMITED.
func (p *People) matches(ctx context.Context, t turn, hash, password string) (bool, error) {
	release, err := p.base.Hashing.Enter(ctx, t.of, t.among)
	if err != nil {
		return false, err
	}
	defer release()
	known := hash != ""
	if !known {
		if hash, err = p.nobody(); err != nil {
			return false, err
		}
	}
	return p.base.Passwords.Matches(hash, password) && known, nil
}

// opening is how a session begins.
type opening struct {
	awaits bool            // a second factor
	gets   person.Identity // that the person has once it is open; the zero value: none
	proved time.Time       // when the person proved who they are; the zero value: now
}

// enter stores a session of a person, who is locked. How says how it begins, or refuses it. RATE_LIMITED: the person logs in too
// often; only who has proved to be that person gets here, so nobody else causes it.
func (p *People) enter(
	ctx context.Context, of id.UserID, by person.Means, from Client, d device,
	how func(context.Context, ports.Tx, account.User) (opening, error),
) (in Entered, err error) {
	err = p.base.TakeOne(ctx, ratelimit.LogIn, "person/"+string(of), "this person logs in too often; wait before the next")
	if err != nil {
		return Entered{}, err
	}
	now, session := p.base.Clock.Now(), base.NewID[id.SessionID](p.base.Entropy)
	text, hash := base.NewToken(p.base.Entropy)
	err = p.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Credentials().Lock(ctx, of)
		if err != nil {
			return base.NotFound(err, person.ErrLogIn())
		}
		begins, err := how(ctx, tx, user)
		if err != nil {
			return err
		}
		at := person.Device{Client: from.Address.Unmap().String(), Agent: from.Agent}
		in = Entered{Session: person.Begin(session, user.ID, hash, by, begins.awaits, at, now).Links(begins.gets), Token: text}
		if !begins.proved.IsZero() {
			in.Session.ProvedAt = begins.proved
		}
		if err := makeRoom(ctx, tx, user.ID, now); err != nil {
			return err
		}
		if err := tx.Sessions().Add(ctx, in.Session); err != nil || begins.awaits {
			return err
		}
		return p.opened(ctx, tx, user, from, d, &in)
	})
	if err != nil {
		return Entered{}, err
	}
	return in, nil
}

// factorOf is the second factor of a person, and whether a log-in needs it.
func factorOf(ctx context.Context, tx ports.Tx, user id.UserID) (f person.Factor, counts bool, err error) {
	f, err = tx.Credentials().Factor(ctx, user)
	if errors.Is(err, ports.ErrNoRow) {
		return f, false, nil
	}
	return f, f.Counts(), err
}

// makeRoom ends sessions of a person, so that one more may begin. The person is locked.
func makeRoom(ctx context.Context, tx ports.Tx, user id.UserID, now time.Time) error {
	all, err := tx.Sessions().Of(ctx, user)
	if err != nil {
		return err
	}
	for _, s := range person.Displaced(all) {
		closed, err := s.Closed(now)
		if err != nil {
			closed = s.At(now) // its time is over
		}
		if err := tx.Sessions().Save(ctx, closed); err != nil {
			return err
		}
	}
	return nil
}

// opened is what a log-in does that has just opened its session: the device remembers it, the log of the account that the person
// owns has it, and the person is told of one on a device that is not known, unless there was none before.
func (p *People) opened(ctx context.Context, tx ports.Tx, user account.User, from Client, d device, in *Entered) (err error) {
	if in.Device, err = p.remember(d, user); err != nil {
		return err
	}
	if err := tx.Credentials().SetLoggedIn(ctx, user.ID, p.base.Clock.Now()); err != nil {
		return err
	}
	of, err := tx.Accounts().OfOwner(ctx, user.ID)
	if errors.Is(err, ports.ErrNoRow) {
		return nil // there is no log, and the session reaches nothing
	}
	if err == nil && user.LoggedInAt != nil && !d.isOf(user.ID) {
		err = p.warn(ctx, tx, of.ID, user.Email, from)
	}
	if err != nil {
		return err
	}
	return p.base.Audit(ctx, tx, database.Record{AccountID: of.ID}, audit.ByUser(user.ID), audit.SessionOpened,
		audit.Details{"client": from.Address.Unmap().String()})
}

// own is the log of the caller's account.
func (p *People) own(ctx context.Context, tx ports.Tx, c access.Caller, what audit.Action, details audit.Details) error {
	return p.base.Audit(ctx, tx, database.Record{AccountID: c.Account.ID}, c.Actor(), what, details)
}
