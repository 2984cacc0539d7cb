package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// A password that somebody knows need not be in force until a move ends: it is changed where the database is, and the other
// server lets in by the new one. No role is made or removed meanwhile.
func TestPasswordsChangeWhileADatabaseMoves(t *testing.T) {
	for _, during := range []string{"Load", "Follow"} {
		t.Run(during, func(t *testing.T) {
			w := newWorld(t)
			w.movable()
			shop := w.forRoles(w.source())
			must(w.Roles.Change(w.ctx, shop, must(w.Roles.List(w.ctx, shop, false))(t)[0].ID, role.Rotation, "before"))(t)
			report := must(w.Roles.List(w.ctx, shop, false))(t)[0]
			leaked := must(w.Roles.Reveal(w.ctx, shop, report.ID))(t).Password
			must(w.moves(w.ControlPlane))(t)
			fresh := ""
			w.during(during, func() {
				done := must(w.ManagedLogins.Rotate(w.ctx, shop, database.OwnerLogin, "during"))(t)
				equal(t, "the rotation", done.Status, role.Completed)
				fresh = done.Password
				revoked := must(w.Roles.Change(w.ctx, shop, report.ID, role.Revocation, "leaked"))(t)
				equal(t, "the revocation", revoked.Status, role.Completed)
				equal(t, "the leaked one gets in", w.home().CanLogIn(customer, "shop", report.Username, leaked), false)
				refused(t, errOf(w.Roles.Create(w.ctx, shop, wanted("another"))), fault.ManagedRoleConflict)
				refused(t, errOf(w.Roles.Delete(w.ctx, shop, report.ID)), fault.ManagedRoleConflict)
			})
			w.work(w.ControlPlane)
			equal(t, "status", w.newest().Status, operation.Succeeded)
			for what, c := range map[string]struct {
				username, password string
				in                 bool
			}{
				"the new password": {w.latest.Username, fresh, true}, "the old one": {w.latest.Username, w.latest.Password, false},
				"the leaked one": {report.Username, leaked, false},
			} {
				equal(t, what+" gets in", w.server.CanLogIn(customer, "shop", c.username, c.password), c.in)
			}
			w.wantNothingFound()
		})
	}
}

// What is changed while customers are about to be kept out is waited for.
func TestAMoveWaitsForAPasswordThatChanges(t *testing.T) {
	w := newWorld(t)
	w.movable()
	must(w.moves(w.ControlPlane))(t)
	shop := w.reached(w.source())
	w.during("Follow", func() {
		w.home().SetUnreachable(true) // so that the change is pending
		done := must(w.ManagedLogins.Rotate(w.ctx, shop, database.OwnerLogin, "during"))(t)
		equal(t, "the rotation", done.Status, role.Pending)
		w.home().SetUnreachable(false)
	})
	for range 100 {
		if worked := must(w.Work.RunNext(w.ctx))(t); !worked {
			w.clock.Advance(time.Second)
		}
		if w.operationOf("move").Status.Final() {
			break
		}
	}
	equal(t, "the move", w.operationOf("move").Status, operation.Succeeded)
	again := must(w.ManagedLogins.Rotate(w.ctx, shop, database.OwnerLogin, "during"))(t)
	equal(t, "the rotation", again.Status, role.Completed)
	equal(t, "gets in", w.server.CanLogIn(customer, "shop", w.latest.Username, again.Password), true)
	w.wantNothingFound()
}

// operationOf is the newest operation of a kind on the database.
func (w *world) operationOf(k operation.Kind) operation.Operation {
	w.t.Helper()
	list := must(w.Operator.Operations(w.ctx, w.source(), ports.Page{}))(w.t)
	for _, o := range list {
		if o.Kind == k {
			return o
		}
	}
	return operation.Operation{}
}

// wantNothingFound demands that the doctor finds nothing at any server.
func (w *world) wantNothingFound() {
	w.t.Helper()
	for _, s := range must(w.Operator.Servers(w.ctx))(w.t) {
		for _, d := range must(w.Operator.Examine(w.ctx, s, brief))(w.t) {
			if d.Code != doctor.PasswordDiffers {
				w.t.Errorf("%s: %v", s.Name, d)
			}
		}
	}
}
