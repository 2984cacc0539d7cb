package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/ports"
)

// A person whom the operator has made has no password, and chooses one by a link.
func TestTheFirstPassword(t *testing.T) {
	c := newCrowd(t)
	c.newAccount("new@example.org", account.Free)
	refused(t, errOf(c.tries("new@example.org", password)), fault.Unauthorized)
	link, ends, err := c.Operator.LinkUser(c.ctx, " New@example.org")
	ok(t, err)
	equal(t, "its end", ends, c.clock.Now().Add(person.ResetTime))
	ok(t, errOf(c.People.Reset(c.ctx, link, password, home())))
	must(c.tries("new@example.org", password))(t)
	_, _, err = c.Operator.LinkUser(c.ctx, "nobody@example.org")
	refused(t, err, fault.ValidationError)
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
	log := must(c.Operator.AccountAudit(c.ctx, c.account.ID, ports.Page{}))(t)
	for _, e := range log {
		if e.What.Action == audit.FactorsReset && e.What.Actor == audit.Operator {
			return
		}
	}
	t.Errorf("the log does not say so: %v", log)
}
