package controlplane_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// grants counts how often the store is asked what the operator has opened.
type grants struct {
	ports.Store
	asked int
}

func (g *grants) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	return g.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error { return fn(ctx, countingTx{tx, g}) })
}

type countingTx struct {
	ports.Tx
	of *grants
}

func (c countingTx) Switches() ports.Switches { return countingSwitches{c.Tx.Switches(), c.of} }

type countingSwitches struct {
	ports.Switches
	of *grants
}

func (c countingSwitches) Grants(ctx context.Context, db id.DatabaseID) (rollout.Grants, error) {
	c.of.asked++
	return c.Switches.Grants(ctx, db)
}

// gated is a world of which one database and its first operation are reached through gates, by its owner, by a viewer and by a
// stranger.
type gated struct {
	*roleWorld
	grants  *grants
	work    id.OperationID
	callers map[string]access.Caller
}

func newGated(t *testing.T) *gated {
	t.Helper()
	w := newRoleWorld(t)
	g := &gated{roleWorld: w, grants: &grants{Store: w.store}}
	g.work = must(w.Backups.Start(w.ctx, w.here()))(t).ID
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	g.callers = map[string]access.Caller{"owner": w.caller, "viewer": w.member(account.Viewer), "stranger": stranger}
	w.ports.Store = g.grants
	w.ControlPlane = w.process(quick())
	return g
}

// reach reaches the database and its operation for what only an owner may do. The answers must be the same, but for the missing
// kind of thing.
func (g *gated) reach(who string, gates ...rollout.Gate) error {
	g.t.Helper()
	_, err := g.Access.Reach(g.ctx, g.callers[who], g.db, account.Own, gates...)
	_, other := g.Operations.Reach(g.ctx, g.callers[who], g.work, account.Own, gates...)
	if fault.Has(err, fault.DatabaseNotFound) {
		refused(g.t, other, fault.OperationNotFound)
	} else if (err == nil) != (other == nil) || err != nil && err.Error() != other.Error() {
		g.t.Errorf("database: %v, operation: %v", err, other)
	}
	return err
}

// A gate is asked after scope and before the member's right, and each switch takes effect at once.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		gate           rollout.Gate
		feature, route string
		closed         fault.Code
	}{
		{rollout.AdditionalRoles, "additional-roles", "", fault.FeatureDisabled},
		{rollout.ExtensionCatalog, "extension-catalog", "", fault.FeatureNotAvailable},
		{rollout.RestoreUpload, "restore", "restore-upload", fault.FeatureNotAvailable},
	} {
		t.Run(string(c.gate), func(t *testing.T) {
			g := newGated(t)
			closed := func() {
				t.Helper()
				refused(t, g.reach("owner", c.gate), c.closed)
				refused(t, g.reach("viewer", c.gate), c.closed)
				refused(t, g.reach("stranger", c.gate), fault.DatabaseNotFound)
			}
			open := func() {
				t.Helper()
				ok(t, g.reach("owner", c.gate))
				refused(t, g.reach("viewer", c.gate), fault.Forbidden)
				refused(t, g.reach("stranger", c.gate), fault.DatabaseNotFound)
			}
			ok(t, g.Operator.SetFeature(g.ctx, c.feature, false))
			closed()
			ok(t, g.Operator.SetFeature(g.ctx, c.feature, true))
			if c.route != "" {
				closed()
				ok(t, g.Operator.Enroll(g.ctx, g.made("other").Record.ID, rollout.All))
				closed()
				ok(t, g.Operator.Enroll(g.ctx, g.db, c.route))
				open()
				ok(t, g.Operator.Unenroll(g.ctx, g.db, c.route))
				closed()
				ok(t, g.Operator.Enroll(g.ctx, g.db, c.route))
			}
			open()
			refused(t, g.reach("owner", c.gate, "flying"), fault.FeatureNotAvailable)
			ok(t, g.Operator.SetFeature(g.ctx, c.feature, false))
			closed()
		})
	}
}

// A target that belongs to no database has no enrolments.
func TestGatesOfAWebhook(t *testing.T) {
	w := newWorld(t)
	hook := must(w.Webhooks.Create(w.ctx, w.caller, "https://hooks.example.org/", nil))(t).Endpoint.ID
	reach := func(gate rollout.Gate) error {
		_, err := w.Webhooks.Reach(w.ctx, w.caller, hook, gate)
		return err
	}
	refused(t, reach(rollout.ExtensionCatalog), fault.FeatureNotAvailable)
	for _, feature := range rollout.Features() {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(t, w.Operator.Enroll(w.ctx, w.made("shop").Record.ID, rollout.All))
	ok(t, reach(rollout.ExtensionCatalog))
	refused(t, reach(rollout.Clone), fault.FeatureNotAvailable)
	_, err := w.Webhooks.Reach(w.ctx, w.caller, hook)
	ok(t, err)
}

// Only what is behind a gate costs a statement more, and one is enough.
func TestWhatGatesCost(t *testing.T) {
	g := newGated(t)
	for _, c := range []struct {
		who   string
		gates []rollout.Gate
		want  int
	}{
		{"owner", nil, 0}, {"viewer", nil, 0}, {"stranger", []rollout.Gate{rollout.Clone}, 0},
		{"owner", []rollout.Gate{rollout.AdditionalRoles}, 1}, {"viewer", []rollout.Gate{rollout.Clone, rollout.AdditionalRoles}, 1},
	} {
		g.grants.asked = 0
		_ = g.reach(c.who, c.gates...) // what it returns, the other tests say
		equal(t, "statements for "+c.who+", of database and operation", g.grants.asked, 2*c.want)
	}
}

// Each use case of a capability behind a gate wants a database that was reached through it, whatever else it was reached through.
func TestUseCasesNeedTheirGate(t *testing.T) {
	w := newRoleWorld(t)
	ok(t, w.Operator.SetFeature(w.ctx, "extension-catalog", true))
	for _, c := range []struct {
		use   any
		other rollout.Gate
	}{{w.Roles, rollout.ExtensionCatalog}, {w.Extensions, rollout.AdditionalRoles}} {
		for name, gates := range map[string][]rollout.Gate{"none": nil, "another": {c.other}} {
			reached := must(w.Access.Reach(w.ctx, w.caller, w.db, account.Own, gates...))(t)
			uses := reflect.ValueOf(c.use)
			for i := range uses.NumMethod() {
				method := uses.Type().Method(i).Name
				use := uses.Method(i)
				arguments := []reflect.Value{reflect.ValueOf(w.ctx), reflect.ValueOf(reached)}
				for n := len(arguments); n < use.Type().NumIn(); n++ {
					arguments = append(arguments, reflect.Zero(use.Type().In(n)))
				}
				results := use.Call(arguments)
				err, _ := results[len(results)-1].Interface().(error)
				t.Run(method+" through "+name, func(t *testing.T) { refusedInside(t, err) })
			}
		}
	}
}
