package controlplane_test

import (
	"fmt"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// ofRoles are the single steps of a role's life, of both models, and what operators do about roles. What changes a role in one
// request is killed, too: see TestChangesSurviveEveryCrash.
var ofRoles = []wish{
	{
		name: "removal of a revoked role", prepare: func(w *world) {
			w.changed(w.anyRoles(role.ManagedRoles), role.Revocation)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.ManagedRoles)
			for _, of := range w.rolesOf(r) {
				return errOf(cp.Roles.Remove(w.ctx, r.here(), of))
			}
			return nil
		},
		sees: (*world).haveRoles,
	},
	{
		name: "set-up, prepared", prepare: func(w *world) { w.halfway(role.ManagedRoles, "PrepareRole") },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.ManagedRoles)
			return errOf(cp.Roles.Prepare(w.ctx, r.here(), w.rolesOf(r)[0]))
		},
		sees: (*world).haveRoles,
	},
	{
		name: "set-up, admitted", prepare: func(w *world) { w.halfway(role.ManagedRoles, "AdmitRole") },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.ManagedRoles)
			return errOf(cp.Roles.Admit(w.ctx, r.here(), w.rolesOf(r)[0]))
		},
		sees: (*world).haveRoles,
	},
	{
		name: "opt-in", prepare: (*world).mayOptIn,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.LegacyRoles.OptIn(w.ctx, w.anyRoles(role.LegacyRoles).here()))
		},
		sees: func(w *world) string { return fmt.Sprint(w.anyRoles(role.LegacyRoles).overlay().OverlayStatus) },
	},
	{
		name: "legacy role", prepare: (*world).optsIn,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.LegacyRoles)
			return errOf(cp.LegacyRoles.Create(w.ctx, r.here(), wanted("report")))
		},
		sees: (*world).haveLegacyRoles,
	},
	{
		name: "legacy role, prepared", prepare: (*world).hasReserved,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.LegacyRoles)
			return errOf(cp.LegacyRoles.Prepare(w.ctx, r.here(), w.rolesOf(r)[0]))
		},
		sees: (*world).haveLegacyRoles,
	},
	{
		name: "legacy role, admitted", prepare: (*world).hasPrepared,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.LegacyRoles)
			return errOf(cp.LegacyRoles.Admit(w.ctx, r.here(), w.rolesOf(r)[0]))
		},
		sees: (*world).haveLegacyRoles,
	},
	{
		name: "legacy role, looked at", prepare: (*world).hasReady,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.LegacyRoles)
			return errOf(cp.LegacyRoles.Reconcile(w.ctx, r.here(), w.rolesOf(r)[0]))
		},
		sees: (*world).haveLegacyRoles,
	},
	{
		name: "end of a legacy role", prepare: (*world).hasReady,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			r := w.anyRoles(role.LegacyRoles)
			for _, of := range w.rolesOf(r) {
				return errOf(cp.LegacyRoles.Delete(w.ctx, r.here(), of))
			}
			return nil
		},
		sees: func(w *world) string { // whoever hears that it is pending asks again
			r := w.anyRoles(role.LegacyRoles)
			for _, of := range w.rolesOf(r) {
				equal(w.t, "removed", must(w.LegacyRoles.Delete(w.ctx, r.here(), of))(w.t).Done, true)
			}
			return w.haveLegacyRoles()
		},
	},
	{
		name: "activation of legacy roles", prepare: (*world).hasSingleLogin,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.ActivateLegacyRoles(w.ctx, w.source())
		},
		sees: (*world).mayHaveLegacyRoles,
	},
	{
		name: "end of the activation of legacy roles", prepare: (*world).mayOptIn,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.DeactivateLegacyRoles(w.ctx, w.source())
		},
		sees: (*world).mayHaveLegacyRoles,
	},
	{
		name: "owner's password, changed by an operator",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.RotateOwner(w.ctx, w.source(), anOrder))
		},
		sees: func(w *world) string { // whose answer was lost asks once more
			former := w.logsIn(w.latest)
			w.latest.Password = must(w.Operator.RotateOwner(w.ctx, w.source(), anOrder))(w.t).Password
			return fmt.Sprint(former, w.logsIn(w.latest))
		},
	},
	{
		name: "end of a change that got stuck", prepare: func(w *world) {
			r := w.anyRoles(role.ManagedRoles)
			made := r.role("report")
			w.server.Obstruct(made.Username, true)
			_, _ = r.change(made.ID, role.Rotation, "stuck")
			w.server.Obstruct(made.Username, false)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			for _, c := range must(w.Operator.Changes(w.ctx, w.source()))(w.t) {
				if c.Change.Open() {
					return errOf(cp.Operator.EndChange(w.ctx, w.source(), c.Change.ID, anOrder))
				}
			}
			return nil
		},
		sees: func(w *world) string { // it ends, and the next one is carried out
			r := w.anyRoles(role.ManagedRoles)
			next := must(r.change(w.rolesOf(r)[0], role.Rotation, "next"))(w.t)
			return fmt.Sprint(next.Status, r.getsIn(r.first().Username, r.password(w.rolesOf(r)[0])))
		},
	},
}

// anyRoles is the database that was made last, as one whose roles are of a model.
func (w *world) anyRoles(m role.Model) *roleWorld {
	came := 3
	if m.OwnerConnects {
		came = 1
	}
	return &roleWorld{world: w, model: m, shop: w.latest, db: w.source(), came: came}
}

// rolesOf are the roles of a database that are listed, revoked ones too.
func (w *world) rolesOf(r *roleWorld) (list []id.RoleID) {
	w.t.Helper()
	of := w.Roles
	if r.model.OwnerConnects {
		of = w.LegacyRoles.Roles
	}
	for _, one := range must(of.List(w.ctx, r.here(), true))(w.t) {
		list = append(list, one.ID)
	}
	return list
}

// changed makes a role and changes it.
func (w *world) changed(r *roleWorld, k role.Kind) {
	w.t.Helper()
	must(r.change(r.role("report").ID, k, "before"))(w.t)
}

// halfway leaves a role whose set-up has lost the reply of a method.
func (w *world) halfway(m role.Model, method string) {
	w.t.Helper()
	w.anyRoles(m).halfMade(method)
	w.server.OnCall(nil)
}

// hasSingleLogin makes another database, with a single login.
func (w *world) hasSingleLogin() {
	w.t.Helper()
	q := request("old-shop")
	q.RoleModel = new(database.SingleLogin)
	w.latest = must(w.Databases.Create(w.ctx, w.caller, q))(w.t)
	ok(w.t, w.Operator.SetFeature(w.ctx, "legacy-roles", true))
}

func (w *world) mayOptIn() {
	w.hasSingleLogin()
	ok(w.t, w.Operator.ActivateLegacyRoles(w.ctx, w.source()))
}

func (w *world) optsIn() {
	w.mayOptIn()
	must(w.LegacyRoles.OptIn(w.ctx, w.anyRoles(role.LegacyRoles).here()))(w.t)
}

func (w *world) hasReserved() {
	w.optsIn()
	must(w.LegacyRoles.Create(w.ctx, w.anyRoles(role.LegacyRoles).here(), wanted("report")))(w.t)
}

// hasPrepared has a role that may connect.
func (w *world) hasPrepared() {
	w.hasReserved()
	r := w.anyRoles(role.LegacyRoles)
	made := must(w.LegacyRoles.Prepare(w.ctx, r.here(), w.rolesOf(r)[0]))(w.t)
	w.server.SetConnect(made.Username, true)
}

func (w *world) hasReady() {
	w.hasPrepared()
	r := w.anyRoles(role.LegacyRoles)
	must(w.LegacyRoles.Admit(w.ctx, r.here(), w.rolesOf(r)[0]))(w.t)
}

// haveLegacyRoles are the roles of the database with a single login, and the logins of the server.
func (w *world) haveLegacyRoles() string {
	w.t.Helper()
	r := w.anyRoles(role.LegacyRoles)
	var list []string
	for _, one := range must(w.LegacyRoles.List(w.ctx, r.here(), true))(w.t) {
		list = append(list, fmt.Sprint(one.DisplayName, " ", one.Status, " ", one.CredentialGeneration))
	}
	return fmt.Sprint(list, len(w.server.Logins()))
}

// mayHaveLegacyRoles is what becomes of an opt-in.
func (w *world) mayHaveLegacyRoles() string {
	w.t.Helper()
	r, err := w.Access.Reach(w.ctx, w.caller, w.source(), account.See, role.LegacyRoles.Gate)
	if err == nil {
		_, err = w.LegacyRoles.OptIn(w.ctx, r)
	}
	return fmt.Sprint(err)
}
