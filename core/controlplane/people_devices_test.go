package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
)

// at is the owner's log-in on a device.
func (c *crowd) at(device, password string) (people.Entered, error) {
	from := home()
	from.Device = device
	return c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: password}, from)
}

// besieged has strangers use up all guesses for the owner, and the attempts of the owner's own address.
func (c *crowd) besieged() {
	c.t.Helper()
	for n := range 40 {
		_, _ = c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: "a guess"}, from(n))
	}
	for range 40 {
		_, _ = c.tries("nobody@example.org", password)
	}
	refused(c.t, errOf(c.tries("owner@example.org", password)), fault.RateLimited)
	refused(c.t, errOf(c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: password}, from(99))),
		fault.RateLimited)
}

// Whatever strangers do, a person logs in by a passkey, and by the password where they did before; a code and a proof are taken.
func TestStrangersLockNobodyOut(t *testing.T) {
	c := withPasskeys(t)
	in := c.entered()
	owner, phone := must(c.visits(in.Token))(t), fakepasskeys.NewDevice("phone")
	must(c.registers(owner, phone))(t)
	c.besieged()
	app := must(c.People.BeginFactor(c.ctx, owner))(t)
	must(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))(t)
	c.clock.Advance(person.Touch)
	c.besieged()
	waiting := must(c.at(in.Device, password))(t)
	equal(t, "the device of a log-in that waits", waiting.Device, "")
	there := home()
	there.Device = in.Device
	must(c.People.GiveFactor(c.ctx, waiting.Token, code(c, app), there))(t)
	c.clock.Advance(person.Touch)
	c.besieged()
	must(c.People.ProveAgain(c.ctx, owner, people.Proof{Password: password, Code: code(c, app)}))(t)
	asked := must(c.People.BeginPasskeyLogIn(c.ctx, from(200)))(t)
	must(c.People.LogInByPasskey(c.ctx, asked.Token, phone.Signs(asked.Options), from(200)))(t)
	asked = must(c.People.BeginPasskeyLogIn(c.ctx, there))(t)
	must(c.People.LogInByPasskey(c.ctx, asked.Token, phone.Signs(asked.Options), there))(t)
}

// A device has guesses of its own, and no more of them after another log-in on it or from elsewhere.
func TestGuessesOnADeviceAreLimited(t *testing.T) {
	c := newCrowd(t)
	device := must(c.at(must(c.at("", password))(t).Device, password))(t).Device
	limited := 0
	for n := range 100 {
		from := from(n)
		from.Device = device
		_, err := c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: "a guess"}, from)
		if fault.Has(err, fault.RateLimited) {
			limited++
		}
		if n == 10 {
			device = must(c.at(device, password))(t).Device
		}
	}
	equal(t, "guesses that were compared", 100-limited, (30-2)+(30-1)) // of the device, and of all others, less the log-ins
}

// What is no token of a device of that person, or of before the password, is worth nothing.
func TestWhoseDeviceItIs(t *testing.T) {
	c := newCrowd(t)
	known := must(c.at("", password))(t).Device
	c.newAccount("other@example.org", account.Free)
	link := must(c.Operator.LinkUser(c.ctx, "other@example.org"))(t).Token
	others := must(c.People.Reset(c.ctx, link, password, home()))(t)
	tried := must(c.visits(must(c.at(known, password))(t).Token))(t)
	changed := must(c.People.ChangePassword(c.ctx, tried, "another one", known))(t)
	link = must(c.Operator.LinkUser(c.ctx, "owner@example.org"))(t).Token
	reset := must(c.People.Reset(c.ctx, link, password, home()))(t)
	again := must(c.at("", password))(t).Device
	c.besieged()
	for what, device := range map[string]string{
		"no token": "no token", "another's": others, "one of the password before the last": known, "one of the last": changed,
	} {
		if err := errOf(c.at(device, password)); !fault.Has(err, fault.RateLimited) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, device := range []string{reset, again} {
		must(c.at(device, password))(t)
	}
}

// Strangers who keep all turns to have a password compared leave those of people who have proved something.
func TestStrangersHoldNoTurnOfOthers(t *testing.T) {
	c := newCrowd(t)
	known := c.entered()
	owner := must(c.visits(known.Token))(t)
	config := quick()
	config.HashWait = time.Millisecond
	c.ControlPlane = c.process(config)
	stuck, free := make(chan struct{}), make(chan struct{})
	c.passwords.stuck = func(password string) {
		if password == "stuck" {
			stuck <- struct{}{}
			<-free
		}
	}
	done := make(chan error)
	for n := range 2 {
		go func() {
			_, err := c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: "stuck"}, from(n))
			done <- err
		}()
		<-stuck
	}
	refused(t, errOf(c.tries("owner@example.org", password)), fault.ServerBusy)
	must(c.at(known.Device, password))(t)
	must(c.People.ProveAgain(c.ctx, owner, people.Proof{Password: password}))(t)
	close(free)
	for range 2 {
		refused(t, <-done, fault.Unauthorized)
	}
}

// Where a person logs in for the first time is told by mail, after the very first log-in; and who knows the password fills no
// mailbox.
func TestLogInsOnNewDevicesAreTold(t *testing.T) {
	c, app, _ := secured(t)
	known := c.deviceOf(app)
	told := func(what string, want int) {
		t.Helper()
		c.mails(c.ControlPlane)
		n := 0
		for _, m := range c.mailbox.Mails("owner@example.org") {
			if m.Subject == "A log-in on another device" {
				n++
			}
		}
		equal(t, "mails after "+what, n, want)
	}
	told("the first two log-ins", 1)
	c.clock.Advance(person.Touch)
	there := home()
	there.Device = known
	in := must(c.at(known, password))(t)
	must(c.People.GiveFactor(c.ctx, in.Token, code(c, app), there))(t)
	told("a log-in on a device that is known", 1)
	in = c.entered()
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, "000000", home())), fault.Unauthorized)
	told("a log-in without its factor", 1)
	for range 2 * mail.MaxWarnings {
		c.clock.Advance(15 * time.Minute)
		c.deviceOf(app)
	}
	told("many", mail.MaxWarnings)
	c.clock.Advance(mail.Window)
	c.deviceOf(app)
	told("another one the day after", mail.MaxWarnings+1)
	newest := c.mailbox.Mails("owner@example.org")
	if text := newest[len(newest)-1].Text; !strings.Contains(text, "198.51.100.4") || !strings.Contains(text, "a browser") {
		t.Errorf("the mail does not say where:\n%s", text)
	}
}

// deviceOf is what a browser keeps that has nothing, after a log-in of the owner with a code.
func (c *crowd) deviceOf(app person.Secret) string {
	c.t.Helper()
	return must(c.People.GiveFactor(c.ctx, c.entered().Token, code(c, app), home()))(c.t).Device
}
