package controlplane_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// Whatever is wrong with a log-in, the answer is the same, and as many passwords were compared.
func TestEveryRefusedLogInIsTheSame(t *testing.T) {
	c := newCrowd(t)
	without, _, _ := c.newAccount("without@example.org", account.Free)
	for what, who := range map[string]people.Credentials{
		"another password":               {Email: "owner@example.org", Password: password + "!"},
		"no password":                    {Email: "owner@example.org"},
		"a person without a password":    {Email: "without@example.org", Password: password},
		"a person without one, and none": {Email: "without@example.org"},
		"nobody":                         {Email: "nobody@example.org", Password: password},
	} {
		before := c.passwords.compared.Load()
		_, err := c.People.LogIn(c.ctx, who, home())
		if err == nil || err.Error() != person.ErrLogIn().Error() {
			t.Errorf("%s: %v", what, err)
		}
		if n := c.passwords.compared.Load() - before; n != 1 {
			t.Errorf("%s: %d passwords were compared", what, n)
		}
	}
	refused(t, errOf(c.tries("no address", password)), fault.Unauthorized)
	equal(t, "sessions", len(c.sessionsOf(without.OwnerID))+len(c.sessionsOf(c.account.OwnerID)), 0)
	if in := must(c.tries(" Owner@Example.org ", password))(t); in.Session.Status != person.Open {
		t.Errorf("the right ones: %s", in.Session.Status)
	}
}

func (c *crowd) sessionsOf(user id.UserID) []person.Session {
	c.t.Helper()
	return must(ports.Read(c.ctx, c.store, func(ctx context.Context, tx ports.Tx) ([]person.Session, error) {
		return tx.Sessions().Of(ctx, user)
	}))(c.t)
}

func TestASessionReachesWhatItsPersonMay(t *testing.T) {
	c := newCrowd(t)
	shop, other := c.made("shop").Record.ID, c.made("other").Record.ID
	guest := c.guest(shop, account.Viewer)
	own := c.person()
	equal(t, "the owner's databases", len(c.listed(own)), 2)
	if list := c.listed(guest); len(list) != 1 || list[0].ID != shop {
		t.Errorf("the guest sees %v", list)
	}
	refused(t, errOf(c.Access.Reach(c.ctx, guest, other, account.See)), fault.DatabaseNotFound)
	refused(t, errOf(c.Access.Reach(c.ctx, guest, shop, account.ManageBackups)), fault.Forbidden)
	must(c.Access.Reach(c.ctx, own, other, account.Own))(t)

	reached := must(c.Access.Reach(c.ctx, guest, shop, account.See))(t)
	refused(t, errOf(c.Members.List(c.ctx, reached)), fault.Forbidden)
	refused(t, errOf(c.Webhooks.Create(c.ctx, guest, receiver, &shop)), fault.InvalidWebhookEndpoint)
	refused(t, errOf(c.Restores.Reserve(c.ctx, must(c.Access.Reach(c.ctx, own, shop, account.Own))(t), restore.Request{})),
		fault.KeyScopeDenied)
	refused(t, errOf(c.Previews.Reach(c.ctx, own, shop)), fault.KeyScopeDenied)

	made := must(c.Databases.Create(c.ctx, own, request("third")))(t)
	log := c.log(made.Record.ID)
	equal(t, "who has made it", log[len(log)-1].Actor, audit.ByUser(c.account.OwnerID))
	ok(t, c.Members.Remove(c.ctx, c.reached(shop), must(c.Members.List(c.ctx, c.reached(shop)))(t).Members[0].ID))
	refused(t, errOf(c.Access.Reach(c.ctx, guest, shop, account.See)), fault.DatabaseNotFound)
	refused(t, reached.Holds(c.ctx, c.shared()), fault.DatabaseNotFound)
}

// What has ended a session ends what is done in its name, also what was reached before.
func TestAnEndedSessionReachesNothing(t *testing.T) {
	for name, end := range map[string]func(c *crowd, in people.Entered, of access.Caller) error{
		"a log-out": func(c *crowd, in people.Entered, _ access.Caller) error { return c.People.LogOut(c.ctx, in.Token) },
		"the person": func(c *crowd, in people.Entered, of access.Caller) error {
			return c.People.EndSession(c.ctx, of, in.Session.ID)
		},
		"another session": func(c *crowd, _ people.Entered, _ access.Caller) error { return c.People.EndOthers(c.ctx, c.person()) },
		"another password": func(c *crowd, _ people.Entered, _ access.Caller) error {
			return errOf(c.People.ChangePassword(c.ctx, c.person(), "another one", ""))
		},
		"a second factor": func(c *crowd, _ people.Entered, _ access.Caller) error {
			owner := c.person()
			app, err := c.People.BeginFactor(c.ctx, owner)
			if err != nil {
				return err
			}
			return errOf(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))
		},
		"twelve idle hours": func(c *crowd, _ people.Entered, _ access.Caller) error { c.clock.Advance(person.Idle); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t)
			shop := c.made("shop").Record.ID
			in := c.entered()
			of := must(c.visits(in.Token))(t)
			reached := must(c.Access.Reach(c.ctx, of, shop, account.See))(t)
			body := reached.Seeing(c.ctx, c.shared(), bytes.NewReader(make([]byte, 10)))
			must(body.Read(make([]byte, 1)))(t)
			ok(t, end(c, in, of))
			c.out("its token", in.Token)
			c.clock.Advance(time.Minute)
			if _, err := io.ReadAll(body); !fault.Has(err, fault.DatabaseNotFound) {
				t.Errorf("a transfer goes on: %v", err)
			}
			if name == "twelve idle hours" {
				return // a request takes no hours
			}
			refused(t, errOf(c.Access.Reach(c.ctx, of, shop, account.See)), fault.DatabaseNotFound)
			refused(t, c.Databases.SetEnvironment(c.ctx, reached, new(database.Production)), fault.DatabaseNotFound)
			refused(t, errOf(c.People.BeginFactor(c.ctx, of)), fault.Unauthorized)
			equal(t, "databases that it sees", len(c.listed(of)), 0)
		})
	}
}

// A page that is open and asks by itself is no use of a session: it ends once nobody has used it for long enough.
func TestAnUnattendedPage(t *testing.T) {
	c := newCrowd(t)
	in := c.entered()
	asks := func(unattended bool) error {
		return errOf(c.Access.AdmitPerson(c.ctx, access.Visit{
			Token: in.Token, Class: ratelimit.Read, Client: home().Address, Unattended: unattended,
		}))
	}
	c.clock.Advance(person.Idle - time.Minute)
	ok(t, asks(false))
	for range 6 {
		c.clock.Advance(person.Idle/6 - time.Second)
		ok(t, asks(true))
	}
	c.clock.Advance(time.Minute)
	refused(t, asks(true), fault.Unauthorized)
}

func TestASecondFactor(t *testing.T) {
	c, app, recovery := secured(t)
	in := c.entered()
	equal(t, "the status", in.Session.Status, person.AwaitsFactor)
	c.out("a log-in without its factor", in.Token)
	right := code(c, app)
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, "000000", home())), fault.Unauthorized)
	second := must(c.People.GiveFactor(c.ctx, in.Token, right, home()))(t)
	c.out("the token of before", in.Token)
	must(c.visits(second.Token))(t)
	refused(t, errOf(c.People.GiveFactor(c.ctx, second.Token, right, home())), fault.Unauthorized)

	in = c.entered()
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, right, home())), fault.Unauthorized) // the same code again
	must(c.People.GiveFactor(c.ctx, in.Token, recovery[0], home()))(t)
	in = c.entered()
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, recovery[0], home())), fault.Unauthorized)
	equal(t, "recovery codes that are left", must(c.People.Security(c.ctx, must(c.visits(second.Token))(t)))(t).Recovery,
		person.RecoveryCodes-1)
	for range person.MaxFactorTries - 1 {
		refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, "000000", home())), fault.Unauthorized)
	}
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, recovery[1], home())), fault.Unauthorized) // the log-in has ended
	in = c.entered()
	c.clock.Advance(person.FactorTime)
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, recovery[1], home())), fault.Unauthorized)
}

// What a thief of a session wants needs a proof that is recent.
func TestWhatNeedsARecentProof(t *testing.T) {
	c, app, _ := secured(t)
	owner := must(c.visits(must(c.People.GiveFactor(c.ctx, c.entered().Token, code(c, app), home()))(t).Token))(t)
	c.clock.Advance(person.Recent + time.Second)
	for what, err := range map[string]error{
		"another password":      errOf(c.People.ChangePassword(c.ctx, owner, "another one", "")),
		"a new app":             errOf(c.People.BeginFactor(c.ctx, owner)),
		"its code":              errOf(c.People.ConfirmFactor(c.ctx, owner, "000000")),
		"the removal of an app": c.People.RemoveFactor(c.ctx, owner),
		"recovery codes":        errOf(c.People.RenewRecovery(c.ctx, owner)),
	} {
		if !fault.Has(err, fault.LoginRequired) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, wrong := range map[string]people.Proof{
		"the password alone": {Password: password}, "the code alone": {Code: code(c, app)},
		"a wrong code": {Password: password, Code: "000000"},
	} {
		if _, err := c.People.ProveAgain(c.ctx, owner, wrong); !fault.Has(err, fault.Unauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again := must(c.People.ProveAgain(c.ctx, owner, people.Proof{Password: password, Code: code(c, app)}))(t)
	owner = must(c.visits(again.Token))(t)
	equal(t, "new recovery codes", len(must(c.People.RenewRecovery(c.ctx, owner))(t)), person.RecoveryCodes)
	ok(t, c.People.RemoveFactor(c.ctx, owner))
	refused(t, c.People.RemoveFactor(c.ctx, owner), fault.ValidationError)
	equal(t, "a log-in without a factor", c.entered().Session.Status, person.Open)
}

func TestAnAppCountsOnceItHasShownACode(t *testing.T) {
	c := newCrowd(t)
	owner := c.person()
	first := must(c.People.BeginFactor(c.ctx, owner))(t)
	app := must(c.People.BeginFactor(c.ctx, owner))(t)
	equal(t, "a log-in", c.entered().Session.Status, person.Open)
	refused(t, errOf(c.People.ConfirmFactor(c.ctx, owner, code(c, first))), fault.ValidationError)
	must(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))(t)
	refused(t, errOf(c.People.BeginFactor(c.ctx, owner)), fault.ValidationError)
	c.clock.Advance(person.Touch)
	refused(t, errOf(c.People.ConfirmFactor(c.ctx, owner, code(c, app))), fault.ValidationError)
}

func TestSessionsOfAPerson(t *testing.T) {
	c := newCrowd(t)
	first := c.entered()
	for range person.MaxSessions {
		c.clock.Advance(time.Minute)
		c.entered()
	}
	c.out("the one that was used longest ago", first.Token)
	c.clock.Advance(time.Second)
	owner := c.person()
	list := must(c.People.Sessions(c.ctx, owner))(t)
	equal(t, "sessions", len(list), person.MaxSessions)
	newest := list[0]
	if newest.ID != owner.Session.ID || newest.TokenHash != nil || newest.Client != "198.51.100.4" || newest.Agent != "a browser" {
		t.Errorf("the newest is %+v", newest)
	}
	guest := c.guest(c.made("shop").Record.ID, account.Viewer)
	ok(t, c.People.EndSession(c.ctx, guest, owner.Session.ID)) // another person's is left alone
	equal(t, "sessions after that", len(must(c.People.Sessions(c.ctx, owner))(t)), person.MaxSessions)
	ok(t, c.People.EndOthers(c.ctx, owner))
	equal(t, "sessions that are left", len(must(c.People.Sessions(c.ctx, owner))(t)), 1)
	c.clock.Advance(person.Life)
	equal(t, "after two weeks", len(must(c.People.Sessions(c.ctx, owner))(t)), 0)
	refused(t, errOf(c.People.Sessions(c.ctx, c.caller)), fault.Unauthorized) // a key is no person
}

// The log of an account says who logged in from where, and what they changed; of a person who owns none nothing is stored.
func TestTheLogNamesPersons(t *testing.T) {
	c, app, _ := secured(t)
	owner := must(c.visits(must(c.People.GiveFactor(c.ctx, c.entered().Token, code(c, app), home()))(t).Token))(t)
	c.clock.Advance(time.Second)
	ok(t, c.People.RemoveFactor(c.ctx, owner))
	c.clock.Advance(time.Second)
	ok(t, errOf(c.People.ChangePassword(c.ctx, owner, "another one", "")))
	var actions []audit.Action
	for _, by := range must(c.Operator.AccountAudit(c.ctx, c.account.ID, ports.Page{}))(t) {
		if e := by.What; e.Actor == audit.ByUser(c.account.OwnerID) {
			actions = append(actions, e.Action)
			if e.Action == audit.SessionOpened && e.Details["client"] != "198.51.100.4" {
				t.Errorf("%s: %v", e.Action, e.Details)
			}
		}
	}
	slices.Sort(actions) // some happen at one moment
	want := []audit.Action{audit.FactorAdded, audit.FactorRemoved, audit.PasswordChanged, audit.SessionOpened, audit.SessionOpened}
	if !slices.Equal(actions, want) {
		t.Errorf("%v, want %v", actions, want)
	}
}
