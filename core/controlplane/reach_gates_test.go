package controlplane_test

import (
	"reflect"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

// gated is a world of which one database and its first operation are reached through gates, by its owner, by a viewer and by a
// stranger.
type gated struct {
	*roleWorld
	work    id.OperationID
	callers map[string]access.Caller
}

func newGated(t *testing.T) *gated {
	t.Helper()
	w := newRoleWorld(t)
	g := &gated{roleWorld: w}
	g.work = must(w.Backups.Start(w.ctx, w.here()))(t).ID
	_, _, stranger := w.newAccount("stranger@example.org", account.Pro)
	g.callers = map[string]access.Caller{"owner": w.caller, "viewer": w.member(account.Viewer), "stranger": stranger}
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
