package people

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/ports"
)

// device is where somebody tries to log in: one on which a person has logged in before, or the zero value.
type device struct {
	name string
	of   account.User
}

// isOf reports whether a person has logged in on the device before.
func (d device) isOf(user id.UserID) bool { return d.name != "" && d.of.ID == user }

// recognize returns the device of a token. One that was not made here, or is worth nothing any more, is that of no device.
func (p *People) recognize(ctx context.Context, presented string) (device, error) {
	var k person.Known
	sealed, err := base64.RawURLEncoding.DecodeString(presented)
	if err == nil {
		sealed, err = p.base.Secrets.Open(sealed, person.KnownContext)
	}
	if err != nil || json.Unmarshal(sealed, &k) != nil {
		return device{}, nil //nolint:nilerr // a stranger's
	}
	user, err := ports.Read(ctx, p.base.Store, func(ctx context.Context, tx ports.Tx) (account.User, error) {
		return tx.Accounts().User(ctx, k.UserID)
	})
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return device{}, nil
	case err != nil:
		return device{}, err
	case !k.Knows(user.ID, user.PasswordHash, p.base.Clock.Now()):
		return device{}, nil
	}
	return device{k.Device, user}, nil
}

// remember makes what a device brings back at the next log-in of a person who has just proved to be that one. A device that is
// known keeps its name, and so its bucket.
func (p *People) remember(d device, of account.User) (string, error) {
	if !d.isOf(of.ID) {
		d.name = p.base.Entropy.Base62(deviceName)
	}
	text, err := json.Marshal(person.Remembered(d.name, of.ID, of.PasswordHash, p.base.Clock.Now()))
	if err != nil {
		return "", err
	}
	sealed, err := p.base.Secrets.Seal(text, person.KnownContext)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// deviceName is how many random characters name a device.
const deviceName = 22

// admit takes one attempt to log in out of the bucket of the device or, where it is not of the person with the mail address or
// that one is empty, out of that of the client's address and that of its network: others with that address keep nobody from a
// device of their own, and who has many devices has no more attempts for others. The mail address is empty where it shows later
// whose attempt it is, by what nobody guesses. RATE_LIMITED.
func (p *People) admit(ctx context.Context, from Client, email string) (device, error) {
	d, err := p.recognize(ctx, from.Device)
	if err != nil {
		return d, err
	}
	if d.name != "" && (email == "" || email == d.of.Email) {
		err := p.base.TakeOne(ctx, ratelimit.LogIn, "device/"+d.name, "")
		if !fault.Has(err, fault.RateLimited) {
			return d, err
		}
	}
	err = p.base.TakeOne(ctx, ratelimit.LogIn, ratelimit.Source(from.Address),
		"too many attempts to log in from this address; wait before the next")
	if site, is := ratelimit.Site(from.Address); is && err == nil {
		err = p.base.TakeOne(ctx, ratelimit.Network, site,
			"too many attempts to log in from the network of this address; wait before the next, or log in where you did before")
	}
	return d, err
}

// admitGuess takes one password or code for a person out of the bucket of a device of that person's or, where it is none or that
// one is empty, out of the one for whoever sends it from wherever. RATE_LIMITED.
func (p *People) admitGuess(ctx context.Context, d device, of string) error {
	return p.admitFor(ctx, ratelimit.Guess, d, of,
		"too many passwords or codes were tried for this person; wait before the next, use a passkey, or log in where you did before")
}

// admitCode is admitGuess for a code of an authenticator app: it has six digits, and who has the password has months to try.
// RATE_LIMITED.
func (p *People) admitCode(ctx context.Context, d device, of string) error {
	return p.admitFor(ctx, ratelimit.Code, d, of,
		"too many codes were tried for this person; use a recovery code or a passkey, log in where you did before, or wait")
}

func (p *People) admitFor(ctx context.Context, class ratelimit.Class, d device, of, refusal string) error {
	if d.name != "" && d.of.Email == of {
		err := p.base.TakeOne(ctx, class, "device/"+d.name, "")
		if !fault.Has(err, fault.RateLimited) {
			return err
		}
	}
	return p.base.TakeOne(ctx, class, of, refusal)
}

// admitProof takes one proof out of the bucket of a session. RATE_LIMITED.
func (p *People) admitProof(ctx context.Context, c access.Caller) error {
	return p.base.TakeOne(ctx, ratelimit.Guess, "session/"+string(c.Session.ID),
		"too many passwords, codes or passkeys were tried in this session; wait before the next")
}
