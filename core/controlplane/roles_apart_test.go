package controlplane_test

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
)

// theOther are a world's database and its use cases of the model that the database does not have.
func (w *roleWorld) theOther() (*roles.Roles, access.Reached, fault.Code) {
	w.t.Helper()
	if w.model.OwnerConnects { // Roles of the world are those of the database
		return w.world.process(quick()).Roles, w.forRoles(w.db), fault.ManagedRoleConflict
	}
	ok(w.t, w.Operator.SetFeature(w.ctx, "legacy-roles", true))
	reached := must(w.Access.Reach(w.ctx, w.caller, w.db, account.See))(w.t).Through(rollout.LegacyRoles)
	return w.LegacyRoles.Roles, reached, fault.LegacyRoleConflict
}

// The routes of one model neither see nor touch the roles of the other, not even by the key of their creation.
func TestModelsStayApart(t *testing.T) {
	for _, newWorld := range []func(*testing.T) *roleWorld{newRoleWorld, newOverlayWorld} {
		w := newWorld(t)
		r := w.role("report")
		half := must(w.Roles.Create(w.ctx, w.here(), wanted("half")))(t)
		c := must(w.change(r.ID, role.Rotation, "key"))(t)
		password, log := w.password(r.ID), len(w.log(w.db))
		commands := func() (n int) {
			for _, method := range []string{"PrepareRole", "AdmitRole", "ChangeLogin", "RemoveRole", "InspectLogin"} {
				n += w.server.Calls(method)
			}
			return n
		}
		before := commands()
		other, here, conflict := w.theOther()
		equal(t, "listed", len(must(other.List(w.ctx, here, true))(t)), 0)
		refused(t, errOf(other.Create(w.ctx, here, wanted("new"))), conflict)
		refused(t, errOf(other.Create(w.ctx, here, wanted("report"))), conflict)
		refused(t, errOf(other.Create(w.ctx, here, wanted("half"))), conflict)
		for what, err := range map[string]error{
			"prepare": errOf(other.Prepare(w.ctx, here, half.ID)),
			"admit":   errOf(other.Admit(w.ctx, here, half.ID)),
			"rename":  errOf(other.Rename(w.ctx, here, r.ID, "new")),
			"reveal":  errOf(other.Reveal(w.ctx, here, r.ID)),
			"rotate":  errOf(other.Change(w.ctx, here, r.ID, role.Rotation, "new")),
			"known":   errOf(other.Change(w.ctx, here, r.ID, role.Rotation, "key")),
			"read":    errOf(other.ReadChange(w.ctx, here, r.ID, c.ID)),
			"replay":  errOf(other.ReplayChange(w.ctx, here, r.ID, c.ID)),
			"delete":  errOf(other.Delete(w.ctx, here, r.ID)),
			"remove":  errOf(other.Remove(w.ctx, here, r.ID)),
		} {
			if !fault.Has(err, fault.RoleNotFound) {
				t.Errorf("%s on %s: %v", what, w.model.Of, err)
			}
		}
		equal(t, "entries in the log", len(w.log(w.db)), log)
		equal(t, "commands", commands(), before)
		equal(t, "gets in", w.getsIn(r.Username, password), true)
		if !w.model.OwnerConnects {
			refused(t, errOf(w.LegacyRoles.OptIn(w.ctx, here)), fault.LegacyRoleConflict)
			refused(t, errOf(w.LegacyRoles.Reconcile(w.ctx, here, r.ID)), fault.RoleNotFound)
		}
	}
}

// The feature and the activation are both needed, and "all" routes are not the activation. Roles outlive it.
func TestLegacyGate(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.role("report")
	password := w.password(r.ID)
	closed := func() {
		t.Helper()
		refused(t, errOf(w.Access.Reach(w.ctx, w.caller, w.db, account.See, rollout.LegacyRoles)), fault.FeatureNotAvailable)
	}
	ok(t, w.Operator.SetFeature(w.ctx, "legacy-roles", false))
	closed()
	ok(t, w.Operator.SetFeature(w.ctx, "legacy-roles", true))
	w.here()
	for range 2 {
		ok(t, w.Operator.DeactivateLegacyRoles(w.ctx, w.db))
		ok(t, w.Operator.Enroll(w.ctx, w.db, rollout.All))
		closed()
		equal(t, "gets in", w.getsIn(r.Username, password), true)
	}
	refusedOn(t, "a route", w.Operator.Enroll(w.ctx, w.db, rollout.LegacyEnrolment), "route")
	for range 2 {
		ok(t, w.Operator.ActivateLegacyRoles(w.ctx, w.db))
	}
	ok(t, w.Operator.Unenroll(w.ctx, w.db, rollout.All))
	equal(t, "as it was", w.password(r.ID), password)
	equal(t, "activated", w.logged(w.db, audit.LegacyActivated), 2)
	equal(t, "deactivated", w.logged(w.db, audit.LegacyDeactivated), 1)

	managed := w.made("managed").Record.ID
	refusedOn(t, "a managed database", w.Operator.ActivateLegacyRoles(w.ctx, managed), "database")
	refusedOn(t, "no database", w.Operator.ActivateLegacyRoles(w.ctx, "00000000-0000-4000-8000-000000000000"), "database")
	ok(t, w.Operator.DeactivateLegacyRoles(w.ctx, managed))
	equal(t, "entries of a managed one", w.logged(managed, audit.LegacyDeactivated), 0)
}

// What is pending when the database is deactivated goes on by itself.
func TestDeactivationDuringAChange(t *testing.T) {
	w := newOverlayWorld(t)
	r := w.role("report")
	w.losing("ChangeLogin", 0)
	must(w.change(r.ID, role.Revocation, "out"))(t)
	ok(t, w.Operator.DeactivateLegacyRoles(w.ctx, w.db))
	w.keep()
	ok(t, w.Operator.ActivateLegacyRoles(w.ctx, w.db))
	w.is(r.ID, role.Revoked)
}

// A key of selected databases does for the exact database, and shows nothing of another one.
func TestLegacyRolesWithASelectedKey(t *testing.T) {
	w := newOverlayWorld(t)
	other := w.made("other").Record.ID
	for _, c := range []struct {
		selected id.DatabaseID
		code     fault.Code
	}{{w.db, ""}, {other, fault.DatabaseNotFound}} {
		_, key, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
			AccountID: w.account.ID, Label: "s", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{c.selected},
		})
		ok(t, err)
		reached, err := w.Access.Reach(w.ctx, w.admit(key), w.db, account.See, rollout.LegacyRoles)
		if c.code != "" {
			refused(t, err, c.code)
			continue
		}
		ok(t, err)
		equal(t, "overlay", must(w.LegacyRoles.OptIn(w.ctx, reached))(t).OverlayStatus, database.OverlayActive)
		equal(t, "created", must(w.LegacyRoles.Create(w.ctx, reached, wanted("report")))(t).Status, role.Reserved)
	}
}

func TestLimitsOfLegacyRoles(t *testing.T) {
	w := newOverlayWorld(t)
	var made []roles.State
	for _, name := range []string{"a", "b", "c"} {
		q := wanted(name)
		q.ConnectionLimit = 20
		r := must(w.Roles.Create(w.ctx, w.here(), q))(t)
		refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("d"))), fault.LegacyRoleConflict) // one is still being made
		must(w.Roles.Prepare(w.ctx, w.here(), r.ID))(t)
		w.server.SetConnect(r.Username, true)
		made = append(made, must(w.Roles.Admit(w.ctx, w.here(), r.ID))(t))
		equal(t, "name", made[len(made)-1].Username, role.LegacyRoles.Username(w.db, len(made)))
	}
	must(w.change(made[0].ID, role.Revocation, "out"))(t)
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("d"))), fault.LegacyRoleConflict)
	must(w.LegacyRoles.Delete(w.ctx, w.here(), made[0].ID))(t)
	equal(t, "ordinal", w.role("d").Ordinal, 4)
	q := wanted("e")
	q.ConnectionLimit = 21
	refused(t, errOf(w.Roles.Create(w.ctx, w.here(), q)), fault.ValidationError)
}
