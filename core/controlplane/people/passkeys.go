package people

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// Asked is what a browser is asked to have a device sign, as JSON, and the token with which the answer has to come.
type Asked struct {
	Options []byte
	Token   string
}

// ask makes a ceremony, which nothing stores before it is answered.
func (p *People) ask(to person.Purpose, in id.SessionID, handle, options, state []byte) (Asked, error) {
	text, err := json.Marshal(person.Asked(handle, state, p.base.Clock.Now()))
	if err != nil {
		return Asked{}, err
	}
	sealed, err := p.base.Secrets.Seal(text, to.Context(in))
	return Asked{options, base64.RawURLEncoding.EncodeToString(sealed)}, err
}

// answered is the ceremony of a token. UNAUTHORIZED: there is none, it is too old, of another session, or for something else.
func (p *People) answered(presented string, to person.Purpose, in id.SessionID) (c person.Ceremony, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(presented)
	if err == nil {
		sealed, err = p.base.Secrets.Open(sealed, to.Context(in))
	}
	if err == nil {
		err = json.Unmarshal(sealed, &c)
	}
	if err != nil || c.Expired(p.base.Clock.Now()) {
		return person.Ceremony{}, person.ErrPasskey()
	}
	return c, nil
}

// spend has a ceremony work once: UNAUTHORIZED where it was answered before.
func (p *People) spend(ctx context.Context, tx ports.Tx, c person.Ceremony) error {
	mark, until := c.Spent()
	fresh, err := tx.Passkeys().Spend(ctx, mark, until)
	if err == nil && !fresh {
		err = person.ErrPasskey()
	}
	return err
}

// Passkeys lists the passkeys of the caller, the oldest first, without what is stored of their keys. UNAUTHORIZED: the caller is
// no person.
func (p *People) Passkeys(ctx context.Context, c access.Caller) ([]person.Passkey, error) {
	if !c.IsPerson() {
		return nil, person.ErrNoSession()
	}
	list, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) ([]person.Passkey, error) {
		return tx.Passkeys().Of(ctx, c.Session.UserID)
	})
	for i := range list {
		list[i].Record = nil
	}
	return list, err
}

// ownerOf is a person as devices know them; without a passkey there is no handle yet.
func ownerOf(u account.User, list []person.Passkey) ports.PasskeyOwner {
	o := ports.PasskeyOwner{Email: u.Email, Name: u.Name}
	for _, k := range list {
		o.Handle, o.Records = k.Handle, append(o.Records, k.Record)
	}
	return o
}

// BeginPasskey begins to register a passkey of the caller. UNAUTHORIZED, LOGIN_REQUIRED as of ChangePassword; the latter
// also as of person.Session.ChangesPasskeys. VALIDATION_ERROR on "passkey": there are too many. FEATURE_NOT_AVAILABLE: the
// installation has none.
func (p *People) BeginPasskey(ctx context.Context, c access.Caller) (Asked, error) {
	if err := p.recent(c); err != nil {
		return Asked{}, err
	}
	list, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) ([]person.Passkey, error) {
		return tx.Passkeys().Of(ctx, c.Session.UserID)
	})
	if err == nil {
		err = c.Session.ChangesPasskeys(c.Operator, len(list) > 0)
	}
	if err == nil {
		err = person.AdmitPasskey(len(list))
	}
	if err != nil {
		return Asked{}, err
	}
	o := ownerOf(c.User, list)
	if o.Handle == nil {
		seed := p.base.Entropy.Seed()
		o.Handle = seed[:person.HandleBytes]
	}
	options, state, err := p.base.Passkeys.BeginRegistration(o)
	if err != nil {
		return Asked{}, err
	}
	return p.ask(person.ToRegister, c.Session.ID, o.Handle, options, state)
}

// FinishPasskey stores the passkey that a device has made, under a name of the person's choice. Errors as of BeginPasskey;
// UNAUTHORIZED also where the response is not accepted. VALIDATION_ERROR on "name", or on "passkey" where it is known.
func (p *People) FinishPasskey(
	ctx context.Context, c access.Caller, presented string, response []byte, name string,
) (made person.Passkey, err error) {
	if err := p.recent(c); err != nil {
		return made, err
	}
	if name, err = account.ValidateName(name); err != nil {
		return made, err
	}
	ceremony, err := p.answered(presented, person.ToRegister, c.Session.ID)
	if err != nil {
		return made, err
	}
	list, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) ([]person.Passkey, error) {
		return tx.Passkeys().Of(ctx, c.Session.UserID)
	})
	if err != nil {
		return made, err
	}
	o := ownerOf(c.User, list)
	o.Handle = ceremony.Handle
	made = person.Passkey{
		ID: base.NewID[id.PasskeyID](p.base.Entropy), UserID: c.Session.UserID, Handle: ceremony.Handle, Name: name,
		CreatedAt: p.base.Clock.Now(),
	}
	if made.Credential, made.Record, err = p.base.Passkeys.FinishRegistration(o, ceremony.State, response); err != nil {
		return person.Passkey{}, err
	}
	const note = "A passkey was added, with which one can log in."
	err = p.updateTelling(ctx, c, note, func(ctx context.Context, tx ports.Tx, user account.User) error {
		now, err := tx.Passkeys().Of(ctx, user.ID)
		if err == nil {
			err = c.Session.ChangesPasskeys(c.Operator, len(now) > 0)
		}
		if err == nil {
			err = p.spend(ctx, tx, ceremony)
		}
		if err == nil {
			err = person.AdmitPasskey(len(now))
		}
		if err != nil {
			return err
		}
		if len(now) > 0 && string(now[0].Handle) != string(made.Handle) {
			return person.ErrPasskey() // two first ones at once would be those of two people to devices
		}
		if err := tx.Passkeys().Add(ctx, made); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.PasskeyAdded, audit.Details{"name": made.Name})
	})
	made.Record = nil
	return made, err
}

// RemovePasskey removes a passkey of the caller. UNAUTHORIZED, LOGIN_REQUIRED as of BeginPasskey. VALIDATION_ERROR on
// "passkey": there is none, or it is the last way to log in.
func (p *People) RemovePasskey(ctx context.Context, c access.Caller, passkey id.PasskeyID) error {
	if err := p.recent(c); err != nil {
		return err
	}
	const note = "A passkey was removed."
	return p.updateTelling(ctx, c, note, func(ctx context.Context, tx ports.Tx, user account.User) error {
		list, err := tx.Passkeys().Of(ctx, user.ID)
		if err == nil {
			err = c.Session.ChangesPasskeys(c.Operator, len(list) > 0)
		}
		if err != nil {
			return err
		}
		_, signsOn, err := p.signsOn(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		if err := person.MayRemovePasskey(list, passkey, user.PasswordHash != "" || signsOn); err != nil {
			return err
		}
		if err := tx.Passkeys().Remove(ctx, user.ID, passkey); err != nil {
			return err
		}
		return p.own(ctx, tx, c, audit.PasskeyRemoved, nil)
	})
}

// BeginPasskeyLogIn begins a log-in by a passkey, whose person is known only from the answer. RATE_LIMITED: too many attempts
// from the address. FEATURE_NOT_AVAILABLE: the installation has no passkeys, or people have to sign on.
func (p *People) BeginPasskeyLogIn(ctx context.Context, from Client) (Asked, error) {
	if err := p.mayPass(); err != nil {
		return Asked{}, err
	}
	if _, err := p.admit(ctx, from, ""); err != nil {
		return Asked{}, err
	}
	options, state, err := p.base.Passkeys.BeginLogIn()
	if err != nil {
		return Asked{}, err
	}
	return p.ask(person.ToLogIn, "", nil, options, state)
}

// LogInByPasskey begins a session, which awaits nothing: the device has verified its user, so that it is both factors.
// UNAUTHORIZED: the response is not accepted, or came too late. FEATURE_NOT_AVAILABLE: people have to sign on.
func (p *People) LogInByPasskey(ctx context.Context, presented string, response []byte, from Client) (Entered, error) {
	if err := p.mayPass(); err != nil {
		return Entered{}, err
	}
	d, err := p.admit(ctx, from, "")
	if err != nil {
		return Entered{}, err
	}
	used, err := p.verified(ctx, presented, person.ToLogIn, "", response)
	if err != nil {
		return Entered{}, err
	}
	return p.enter(ctx, used.UserID, person.ByPasskey, from, d, func(
		ctx context.Context, tx ports.Tx, _ account.User,
	) (opening, error) {
		return opening{}, p.use(ctx, tx, used)
	})
}

// BeginPasskeyProof begins a proof by a passkey of a person who is logged in. UNAUTHORIZED: the caller is no person.
// RATE_LIMITED: too many proofs were tried in the session. FEATURE_NOT_AVAILABLE as of BeginPasskeyLogIn, but for operators.
func (p *People) BeginPasskeyProof(ctx context.Context, c access.Caller) (Asked, error) {
	if err := p.mayProve(ctx, c, person.ByPasskey); err != nil {
		return Asked{}, err
	}
	options, state, err := p.base.Passkeys.BeginLogIn()
	if err != nil {
		return Asked{}, err
	}
	return p.ask(person.ToProve, c.Session.ID, nil, options, state)
}

// ProveByPasskey is ProveAgain by a passkey of the caller.
func (p *People) ProveByPasskey(ctx context.Context, c access.Caller, presented string, response []byte) (Entered, error) {
	if err := p.mayProve(ctx, c, person.ByPasskey); err != nil {
		return Entered{}, err
	}
	used, err := p.verified(ctx, presented, person.ToProve, c.Session.ID, response)
	if err != nil {
		return Entered{}, err
	}
	return p.prove(ctx, c.Session, person.ErrPasskey(), func(
		ctx context.Context, tx ports.Tx, user account.User,
	) (person.Means, error) {
		if used.UserID != user.ID {
			return "", nil
		}
		return person.ByPasskey, p.use(ctx, tx, used)
	}, nothing)
}

// answer is a passkey that has signed a ceremony, with its new record.
type answer struct {
	person.Passkey
	to person.Ceremony
}

// verified is the answer in a response.
func (p *People) verified(
	ctx context.Context, presented string, to person.Purpose, in id.SessionID, response []byte,
) (used answer, err error) {
	if used.to, err = p.answered(presented, to, in); err != nil {
		return used, err
	}
	_, record, err := p.base.Passkeys.FinishLogIn(used.to.State, response, func(credential []byte) (ports.PasskeyOwner, error) {
		return ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (o ports.PasskeyOwner, err error) {
			if used.Passkey, err = tx.Passkeys().ByCredential(ctx, credential); err != nil {
				return o, err
			}
			user, err := tx.Accounts().User(ctx, used.UserID)
			return ownerOf(user, []person.Passkey{used.Passkey}), err
		})
	})
	now := p.base.Clock.Now()
	used.Record, used.UsedAt = record, &now
	return used, base.NotFound(err, person.ErrPasskey())
}

// use stores the use of a passkey, unless it was removed meanwhile, or had signed the same before.
func (p *People) use(ctx context.Context, tx ports.Tx, used answer) error {
	if err := p.spend(ctx, tx, used.to); err != nil {
		return err
	}
	return base.NotFound(tx.Passkeys().Save(ctx, used.Passkey), person.ErrPasskey())
}
