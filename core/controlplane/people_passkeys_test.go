package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
)

func withPasskeys(t *testing.T) *crowd {
	t.Helper()
	c := newCrowd(t)
	c.ports.Passkeys = fakepasskeys.Verifier{Entropy: c.ports.Entropy}
	c.ControlPlane = c.process(quick())
	return c
}

// registers gives a person the passkey of a device.
func (c *crowd) registers(of access.Caller, d *fakepasskeys.Device) (person.Passkey, error) {
	c.t.Helper()
	asked, err := c.People.BeginPasskey(c.ctx, of)
	if err != nil {
		return person.Passkey{}, err
	}
	return c.People.FinishPasskey(c.ctx, of, asked.Token, d.Registers(asked.Options), "a phone")
}

// logsInBy logs in by the passkey of a device.
func (c *crowd) logsInBy(d *fakepasskeys.Device) (people.Entered, error) {
	c.t.Helper()
	asked := must(c.People.BeginPasskeyLogIn(c.ctx, home()))(c.t)
	return c.People.LogInByPasskey(c.ctx, asked.Token, d.Signs(asked.Options), home())
}

func TestALogInByPasskey(t *testing.T) {
	c := withPasskeys(t)
	owner, phone := c.person(), fakepasskeys.NewDevice("phone")
	k := must(c.registers(owner, phone))(t)
	in := must(c.logsInBy(phone))(t)
	equal(t, "whose session it is", in.Session.UserID, c.account.OwnerID)
	equal(t, "its status", in.Session.Status, person.Open)
	must(c.visits(in.Token))(t)
	list := must(c.People.Passkeys(c.ctx, owner))(t)
	if len(list) != 1 || list[0].ID != k.ID || list[0].UsedAt == nil || list[0].Record != nil || list[0].Name != "a phone" {
		t.Errorf("%+v", list)
	}
	refused(t, errOf(c.logsInBy(fakepasskeys.NewDevice("a stranger's"))), fault.Unauthorized)
	careless := fakepasskeys.NewDevice("careless")
	careless.Careless = true
	refused(t, errOf(c.registers(owner, careless)), fault.Unauthorized)
	ok(t, c.People.RemovePasskey(c.ctx, owner, k.ID))
	refused(t, errOf(c.logsInBy(phone)), fault.Unauthorized)
	refused(t, c.People.RemovePasskey(c.ctx, owner, k.ID), fault.ValidationError)
}

// A passkey is both factors, also where there is an authenticator app.
func TestAPasskeyIsBothFactors(t *testing.T) {
	c := withPasskeys(t)
	owner, phone := c.person(), fakepasskeys.NewDevice("phone")
	must(c.registers(owner, phone))(t)
	app := must(c.People.BeginFactor(c.ctx, owner))(t)
	must(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))(t)
	equal(t, "the status", must(c.logsInBy(phone))(t).Session.Status, person.Open)
}

func TestAChallengeWorksOnceInItsOwnSession(t *testing.T) {
	c := withPasskeys(t)
	owner, phone := c.person(), fakepasskeys.NewDevice("phone")
	begin := must(c.People.BeginPasskey(c.ctx, owner))(t)
	registered := phone.Registers(begin.Options)
	k := must(c.People.FinishPasskey(c.ctx, owner, begin.Token, registered, "a phone"))(t)
	ok(t, c.People.RemovePasskey(c.ctx, owner, k.ID))
	refused(t, errOf(c.People.FinishPasskey(c.ctx, owner, begin.Token, registered, "a phone")), fault.Unauthorized)
	must(c.registers(owner, phone))(t)

	asked := must(c.People.BeginPasskeyLogIn(c.ctx, home()))(t)
	signed := phone.Signs(asked.Options)
	must(c.People.LogInByPasskey(c.ctx, asked.Token, signed, home()))(t)
	for _, again := range []string{asked.Token, sameBytes(asked.Token)} {
		refused(t, errOf(c.People.LogInByPasskey(c.ctx, again, signed, home())), fault.Unauthorized)
	}
	asked = must(c.People.BeginPasskeyProof(c.ctx, owner))(t)
	signed = phone.Signs(asked.Options)
	must(c.People.ProveByPasskey(c.ctx, owner, asked.Token, signed))(t)
	refused(t, errOf(c.People.ProveByPasskey(c.ctx, owner, asked.Token, signed)), fault.Unauthorized)

	asked = must(c.People.BeginPasskeyLogIn(c.ctx, home()))(t)
	c.clock.Advance(person.CeremonyTime)
	refused(t, errOf(c.People.LogInByPasskey(c.ctx, asked.Token, phone.Signs(asked.Options), home())), fault.Unauthorized)

	other := c.person()
	tablet := fakepasskeys.NewDevice("tablet")
	asked = must(c.People.BeginPasskey(c.ctx, owner))(t)
	made := tablet.Registers(asked.Options)
	refused(t, errOf(c.People.FinishPasskey(c.ctx, other, asked.Token, made, "a tablet")), fault.Unauthorized)
	refused(t, errOf(c.People.ProveByPasskey(c.ctx, owner, asked.Token, phone.Signs(asked.Options))), fault.Unauthorized)
	asked = must(c.People.BeginPasskeyProof(c.ctx, owner))(t)
	signed = phone.Signs(asked.Options)
	refused(t, errOf(c.People.ProveByPasskey(c.ctx, other, asked.Token, signed)), fault.Unauthorized)
	refused(t, errOf(c.People.LogInByPasskey(c.ctx, asked.Token, signed, home())), fault.Unauthorized)
	for _, token := range []string{"", "no token", asked.Token[1:]} {
		refused(t, errOf(c.People.ProveByPasskey(c.ctx, owner, token, signed)), fault.Unauthorized)
	}
}

// sameBytes is another text of the same bytes, as whoever decodes it loosely takes it.
func sameBytes(base64 string) string { return base64[:10] + "\n" + base64[10:] }

// Who only asks keeps nobody out, from however many addresses; and nobody logs in more often than what remembers it is emptied.
func TestPasskeysUnderLoad(t *testing.T) {
	c := withPasskeys(t)
	phone := fakepasskeys.NewDevice("phone")
	must(c.registers(c.person(), phone))(t)
	for n := range 1000 {
		for range 25 {
			_, err := c.People.BeginPasskeyLogIn(c.ctx, from(n))
			if err != nil && !fault.Has(err, fault.RateLimited) {
				t.Fatal(err)
			}
		}
	}
	must(c.logsInBy(phone))(t)
	limited := 0
	for n := range 40 {
		asked := must(c.People.BeginPasskeyLogIn(c.ctx, from(1000+n)))(t)
		_, err := c.People.LogInByPasskey(c.ctx, asked.Token, phone.Signs(asked.Options), from(1000+n))
		if fault.Has(err, fault.RateLimited) {
			limited++
		}
	}
	equal(t, "log-ins of one person from 40 addresses that were refused", limited, 22) // two were before
}

func TestAPasskeyProvesAgain(t *testing.T) {
	c := withPasskeys(t)
	owner, phone := c.person(), fakepasskeys.NewDevice("phone")
	must(c.registers(owner, phone))(t)
	guest := c.guest(c.made("shop").Record.ID, account.Viewer)
	c.clock.Advance(person.Recent + time.Second)
	refused(t, errOf(c.registers(owner, fakepasskeys.NewDevice("tablet"))), fault.LoginRequired)

	asked := must(c.People.BeginPasskeyProof(c.ctx, guest))(t)
	refused(t, errOf(c.People.ProveByPasskey(c.ctx, guest, asked.Token, phone.Signs(asked.Options))), fault.Unauthorized)
	asked = must(c.People.BeginPasskeyProof(c.ctx, owner))(t)
	in := must(c.People.ProveByPasskey(c.ctx, owner, asked.Token, phone.Signs(asked.Options)))(t)
	owner = must(c.visits(in.Token))(t)
	must(c.registers(owner, fakepasskeys.NewDevice("tablet")))(t)
}

func TestHowManyPasskeys(t *testing.T) {
	c := withPasskeys(t)
	owner := c.person()
	for n := range person.MaxPasskeys {
		must(c.registers(owner, fakepasskeys.NewDevice(string(rune('a'+n)))))(t)
	}
	refused(t, errOf(c.registers(owner, fakepasskeys.NewDevice("one more"))), fault.ValidationError)
	c.setPassword(c.account.OwnerID, "")
	list := must(c.People.Passkeys(c.ctx, owner))(t)
	for _, k := range list[1:] {
		ok(t, c.People.RemovePasskey(c.ctx, owner, k.ID))
	}
	without := newCrowd(t)
	refused(t, errOf(without.People.BeginPasskeyLogIn(without.ctx, home())), fault.FeatureNotAvailable)
	refused(t, errOf(without.People.BeginPasskey(without.ctx, without.person())), fault.FeatureNotAvailable)
}
