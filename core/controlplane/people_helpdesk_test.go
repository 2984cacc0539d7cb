package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/ports"
)

// A person whom the operator has made has no password, and chooses one by a link, for which there is a week.
func TestTheFirstPassword(t *testing.T) {
	c := newCrowd(t)
	c.newAccount("new@example.org", account.Free)
	refused(t, errOf(c.tries("new@example.org", password)), fault.Unauthorized)
	link := must(c.Operator.LinkUser(c.ctx, " New@example.org"))(t)
	equal(t, "its end", link.EndsAt, c.clock.Now().Add(person.WelcomeTime))
	ok(t, errOf(c.People.Reset(c.ctx, link.Token, password, home())))
	must(c.tries("new@example.org", password))(t)
	link = must(c.Operator.LinkUser(c.ctx, "new@example.org"))(t)
	equal(t, "the end of the next", link.EndsAt, c.clock.Now().Add(person.ResetTime))
	refused(t, errOf(c.Operator.LinkUser(c.ctx, "nobody@example.org")), fault.ValidationError)
}

// An invitation makes what is missing, and is mailed where it should be and the installation can.
func TestPeopleAreInvited(t *testing.T) {
	c := resetting(t)
	eve := operator.NewAccount{Email: "Eve@example.org", Name: "Eve", Plan: account.Pro}
	printed := must(c.Operator.InviteUser(c.ctx, eve, false))(t)
	if !printed.Made || printed.Link.Mailed || printed.Account.Plan != account.Pro || printed.Account.OwnerID != printed.User.ID {
		t.Errorf("%+v", printed)
	}
	eve.Plan = account.Business
	sent := must(c.Operator.InviteUser(c.ctx, eve, true))(t)
	if sent.Made || !sent.Link.Mailed || sent.Account.ID != printed.Account.ID || sent.Account.Plan != account.Pro {
		t.Errorf("%+v", sent)
	}
	equal(t, "links that were mailed", c.links("eve@example.org")[0], sent.Link.Token)
	refused(t, errOf(c.People.Reset(c.ctx, printed.Link.Token, password, home())), fault.Unauthorized)
	ok(t, errOf(c.People.Reset(c.ctx, sent.Link.Token, password, home())))
	must(c.tries("eve@example.org", password))(t)
	again := must(c.Operator.InviteUser(c.ctx, eve, true))(t)
	equal(t, "the hash of a password that is told", again.User.PasswordHash, "")
	refused(t, errOf(c.Operator.InviteUser(c.ctx, operator.NewAccount{Email: "no address"}, true)), fault.ValidationError)

	c.ports.Mailer = nil
	c.ControlPlane = c.process(withResets(t))
	eve.Email = "eva@example.org"
	equal(t, "mailed without mails", must(c.Operator.InviteUser(c.ctx, eve, true))(t).Link.Mailed, false)
}

// The operator sees where a person is logged in, and ends that; where there is nothing to end, nothing is logged.
func TestSessionsOfAUser(t *testing.T) {
	c := newCrowd(t)
	ended := func() int { return must(c.Operator.EndSessions(c.ctx, "owner@example.org"))(t) }
	equal(t, "none that end", ended(), 0)
	first, second := c.entered(), c.entered()
	list := must(c.Operator.UserSessions(c.ctx, "Owner@example.org"))(t)
	if len(list) != 2 || list[0].TokenHash != nil || list[0].Client != "198.51.100.4" {
		t.Errorf("%+v", list)
	}
	equal(t, "some that end", ended(), 2)
	c.out("the first", first.Token)
	c.out("the second", second.Token)
	equal(t, "what is left", len(must(c.Operator.UserSessions(c.ctx, "owner@example.org"))(t)), 0)
	equal(t, "entries of the log", c.logged(audit.AllSessionsEnded), 1)
	refused(t, errOf(c.Operator.UserSessions(c.ctx, "nobody@example.org")), fault.ValidationError)
	refused(t, errOf(c.Operator.EndSessions(c.ctx, "nobody@example.org")), fault.ValidationError)
}

// logged is how many entries the account's log has of what an operator did.
func (c *crowd) logged(what audit.Action) (n int) {
	c.t.Helper()
	for _, e := range must(c.Operator.AccountAudit(c.ctx, c.account.ID, ports.Page{}))(c.t) {
		if e.What.Action == what && e.What.Actor == audit.Operator {
			n++
		}
	}
	return n
}

func TestLostFactors(t *testing.T) {
	c, _, recovery := secured(t)
	c.ports.Passkeys = fakepasskeys.Verifier{Entropy: c.ports.Entropy}
	c.ControlPlane = c.process(quick())
	in := must(c.People.GiveFactor(c.ctx, c.entered().Token, recovery[0], home()))(t)
	owner, phone := must(c.visits(in.Token))(t), fakepasskeys.NewDevice("phone")
	must(c.registers(owner, phone))(t)
	ok(t, c.Operator.ResetFactors(c.ctx, "owner@example.org"))
	refused(t, errOf(c.logsInBy(phone)), fault.Unauthorized)
	equal(t, "the status of a log-in", c.entered().Session.Status, person.Open)
	equal(t, "what is left", must(c.People.Security(c.ctx, c.person()))(t), people.Security{HasPassword: true})
	refused(t, c.Operator.ResetFactors(c.ctx, "nobody@example.org"), fault.ValidationError)
	equal(t, "entries of the log", c.logged(audit.FactorsReset), 1)
}
