package controlplane_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/ports"
)

// provesBy proves the owner's session once more by the passkey of a device.
func (c *crowd) provesBy(in people.Entered, d *fakepasskeys.Device) people.Entered {
	c.t.Helper()
	of := must(c.visits(in.Token))(c.t)
	asked := must(c.People.BeginPasskeyProof(c.ctx, of))(c.t)
	return must(c.People.ProveByPasskey(c.ctx, of, asked.Token, d.Signs(asked.Options)))(c.t)
}

// An operator is one in a session that was proved by a passkey, while they have one and are named, as the next request finds it.
func TestWhoIsAnOperator(t *testing.T) {
	c := withPasskeys(t)
	in, phone := c.entered(), fakepasskeys.NewDevice("phone")
	operates := func(what string, in people.Entered, want bool) {
		t.Helper()
		equal(t, what, must(c.visits(in.Token))(t).Operates() == nil, want)
	}
	k := must(c.registers(must(c.visits(in.Token))(t), phone))(t)
	byKey := must(c.logsInBy(phone))(t)
	operates("who is not named", byKey, false)
	ok(t, c.Operator.AddOperator(c.ctx, "Owner@example.org"))
	ok(t, c.Operator.AddOperator(c.ctx, "owner@example.org"))
	operates("who was named meanwhile", byKey, true)
	operates("in a session by password", in, false)
	in = c.provesBy(in, phone)
	operates("after a proof by a passkey", in, true)
	in = must(c.People.ProveAgain(c.ctx, must(c.visits(in.Token))(t), people.Proof{Password: password}))(t)
	operates("after a proof by password", in, false)
	list := must(c.Operator.Operators(c.ctx))(t)
	if len(list) != 1 || list[0].UserID != c.account.OwnerID || list[0].Passkeys != 1 {
		t.Errorf("%+v", list)
	}
	refused(t, c.caller.Operates(), fault.RouteNotFound)

	ok(t, c.Operator.RemoveOperator(c.ctx, "owner@example.org"))
	operates("who was removed", byKey, false)
	refused(t, c.Operator.RemoveOperator(c.ctx, "owner@example.org"), fault.ValidationError)
	for _, change := range []func(string) error{
		func(email string) error { return c.Operator.AddOperator(c.ctx, email) },
		func(email string) error { return c.Operator.RemoveOperator(c.ctx, email) },
	} {
		refused(t, change("nobody@example.org"), fault.ValidationError)
		refused(t, change("no address"), fault.ValidationError)
	}
	ok(t, c.Operator.AddOperator(c.ctx, "owner@example.org"))
	byKey = c.provesBy(byKey, phone)
	ok(t, c.People.RemovePasskey(c.ctx, must(c.visits(byKey.Token))(t), k.ID))
	operates("who has no passkey any more", byKey, false)

	logged := map[audit.Action]int{}
	for _, e := range must(c.Operator.InstallationAudit(c.ctx, ports.Page{}))(t) {
		if e.What.Details["userId"] == string(c.account.OwnerID) && e.What.Actor == audit.Operator {
			logged[e.What.Action]++
		}
	}
	equal(t, "entries of those who were named", logged[audit.OperatorAdded], 2)
	equal(t, "entries of those who were removed", logged[audit.OperatorRemoved], 1)
}

// What an operator changes in the console is logged with name and reason. It needs both, a recent proof, and a session and a name
// that last until it is stored.
func TestWhatAnOperatorChanges(t *testing.T) {
	c := withPasskeys(t)
	phone := fakepasskeys.NewDevice("phone")
	must(c.registers(must(c.visits(c.entered().Token))(t), phone))(t)
	ok(t, c.Operator.AddOperator(c.ctx, "owner@example.org"))
	maintenance := func(by access.Caller, reason string, on bool) error {
		return c.Console.Change(c.ctx, by, reason, func(ctx context.Context, o *operator.Operator, _ operation.Order) error {
			return o.SetMaintenance(ctx, on)
		})
	}
	is := func(want bool) {
		t.Helper()
		on, _, err := c.Operator.Maintenance(c.ctx)
		ok(t, err)
		equal(t, "maintenance", on, want)
	}
	in := func() access.Caller { return must(c.visits(must(c.logsInBy(phone))(t).Token))(t) }

	ok(t, maintenance(in(), " a new disk\n", true))
	is(true)
	log := must(c.Operator.InstallationAudit(c.ctx, ports.Page{}))(t)
	at := slices.IndexFunc(log, func(e base.By[audit.Entry]) bool { return e.What.Action == audit.MaintenanceBegun })
	equal(t, "the operator", log[at].What.Details[audit.OperatorDetail], "owner@example.org")
	equal(t, "the reason", log[at].What.Details[audit.ReasonDetail], "a new disk")
	refused(t, maintenance(in(), " ", false), fault.ValidationError)
	refused(t, maintenance(c.caller, "a key", false), fault.RouteNotFound)
	late := in()
	c.clock.Advance(person.Recent + time.Second)
	refused(t, maintenance(late, "late", false), fault.LoginRequired)

	demoted := must(c.logsInBy(phone))(t)
	passed := must(c.visits(demoted.Token))(t)
	must(c.People.ProveAgain(c.ctx, passed, people.Proof{Password: password}))(t)
	refused(t, maintenance(passed, "after a proof by password", false), fault.LoginRequired)
	ended := in()
	must(c.Operator.EndSessions(c.ctx, "owner@example.org"))(t)
	refused(t, maintenance(ended, "after the session", false), fault.Unauthorized)
	unnamed := in()
	ok(t, c.Operator.RemoveOperator(c.ctx, "owner@example.org"))
	refused(t, maintenance(unnamed, "after the name", false), fault.Forbidden)
	is(true)
}

// By what a session was proved is what the last proof says.
func TestWhatProvesASession(t *testing.T) {
	c, app, recovery := secured(t)
	waiting := c.entered()
	equal(t, "the password", waiting.Session.ProvedBy, person.ByPassword)
	in := must(c.People.GiveFactor(c.ctx, waiting.Token, code(c, app), home()))(t)
	equal(t, "a code", in.Session.ProvedBy, person.ByCode)
	again := must(c.People.ProveAgain(c.ctx, must(c.visits(in.Token))(t), people.Proof{Password: password, Code: recovery[0]}))(t)
	equal(t, "the password and a code", again.Session.ProvedBy, person.ByCode)
}
