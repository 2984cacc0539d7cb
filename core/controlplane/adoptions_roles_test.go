package controlplane_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// asked asks for a role of the world's database.
func (w *roleWorld) asked(username string) adoptions.AskedRole {
	return adoptions.AskedRole{Database: w.db, Username: username, Order: anOrder}
}

// eachRoleWorld is a test of both models.
func eachRoleWorld(t *testing.T, test func(t *testing.T, w *roleWorld)) {
	t.Helper()
	t.Run("managed", func(t *testing.T) { test(t, managed(newWorld(t))) })
	t.Run("single login", func(t *testing.T) {
		w := newLegacyWorld(t)
		must(w.LegacyRoles.OptIn(w.ctx, w.here()))(t)
		test(t, w)
	})
}

// With a role of a database whose owner has opted in since, the opt-in comes back, too.
func TestAnOptInIsAdopted(t *testing.T) {
	w := newLegacyWorld(t)
	restore := w.store.Backup()
	must(w.LegacyRoles.OptIn(w.ctx, w.here()))(t)
	r := w.role("reports")
	w.back(restore)
	must(w.Operator.AdoptRole(w.ctx, w.asked(r.Username)))(t)
	w.wantFindings(doctor.PasswordDiffers)
	w.role("another")
}

// A role that was made since gets a record, and who uses it goes on. Its owner rotates its password, and then nothing differs.
func TestARoleIsAdopted(t *testing.T) {
	eachRoleWorld(t, func(t *testing.T, w *roleWorld) {
		restore := w.store.Backup()
		r := w.role("reports")
		w.back(restore)
		w.wantFindings(doctor.RoleUnknown, doctor.MemberUnexpected)
		made := must(w.Operator.AdoptRole(w.ctx, w.asked(r.Username)))(t)
		equal(t, "status", made.Status, role.Ready)
		equal(t, "asked again", must(w.Operator.AdoptRole(w.ctx, w.asked(r.Username)))(t).ID, made.ID)
		equal(t, "in the log", w.logged(w.db, audit.RoleAdopted), 1)
		w.wantFindings(doctor.PasswordDiffers)
		refused(t, errOf(w.Operator.DropRole(w.ctx, w.asked(r.Username))), fault.DatabaseStateConflict)
		rotated := must(w.Roles.Change(w.ctx, w.here(), made.ID, role.Rotation, "rotated"))(t)
		equal(t, "the rotation", rotated.Status, role.Completed)
		w.wantFindings()
	})
}

// A role that only one side has is dropped, whichever that is.
func TestARoleIsDropped(t *testing.T) {
	eachRoleWorld(t, func(t *testing.T, w *roleWorld) {
		restore := w.store.Backup()
		since := w.role("since")
		w.back(restore)
		for range 2 {
			err := errOf(w.Operator.DropRole(w.ctx, w.asked(since.Username)))
			if w.logged(w.db, audit.RoleDropOrdered) == 1 && err != nil {
				refused(t, err, fault.ValidationError) // asked again: there is none any more
			} else {
				ok(t, err)
			}
		}
		w.wantFindings()

		both := w.role("both")
		restore = w.store.Backup()
		must(w.Roles.Delete(w.ctx, w.here(), both.ID))(t)
		w.back(restore)
		w.wantFindings(doctor.RoleMissing)
		equal(t, "dropped", must(w.Operator.DropRole(w.ctx, w.asked(both.Username)))(t), true)
		w.wantFindings()
	})
}

// What is asked wrongly changes nothing.
func TestWhatRoleIsNotAdopted(t *testing.T) {
	w := newRoleWorld(t)
	restore := w.store.Backup()
	r := w.role("reports")
	w.back(restore)
	for name, c := range map[string]struct {
		change func(q *adoptions.AskedRole)
		code   fault.Code
	}{
		"without a reason": {func(q *adoptions.AskedRole) { q.Order.Reason = "" }, fault.ValidationError},
		"another role":     {func(q *adoptions.AskedRole) { q.Username = "nobody" }, fault.ValidationError},
		"a login of the database": {
			func(q *adoptions.AskedRole) { q.Username = database.RoleNames(w.db, "shop").Runtime }, fault.DatabaseStateConflict,
		},
		"another database": {func(q *adoptions.AskedRole) { q.Database = "none" }, fault.DatabaseNotFound},
	} {
		q := w.asked(r.Username)
		c.change(&q)
		refused(t, errOf(w.Operator.AdoptRole(w.ctx, q)), c.code)
		refused(t, errOf(w.Operator.DropRole(w.ctx, q)), c.code)
		if t.Failed() {
			t.Fatal(name)
		}
	}
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Operator.AdoptRole(w.ctx, w.asked(r.Username))), fault.AgentError)
	w.server.SetUnreachable(false)
	must(w.Backups.Start(w.ctx, w.reached(w.db)))(t)
	refused(t, errOf(w.Operator.AdoptRole(w.ctx, w.asked(r.Username))), fault.DatabaseStateConflict)
	equal(t, "roles", len(must(w.Roles.List(w.ctx, w.here(), true))(t)), 0)
}

// Records of backups that were deleted since are forgotten, and no other one is.
func TestMissingBackupsAreForgotten(t *testing.T) {
	w, db := treated(t)
	must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	w.work(w.ControlPlane)
	list := w.backups(w.reached(db.ID))
	restore := w.store.Backup()
	ok(t, w.Backups.Delete(w.ctx, w.reached(db.ID), list[0].Filename))
	w.back(restore)
	w.wantFindings(doctor.FileMissing)
	q := adoptions.AskedFiles{Database: db.ID, Filename: list[1].Filename, Order: anOrder}
	refused(t, errOf(w.Operator.ForgetBackups(w.ctx, q)), fault.BackupConflict)
	q.Filename = "20200101_000000.sql.gz"
	refused(t, errOf(w.Operator.ForgetBackups(w.ctx, q)), fault.BackupNotFound)
	q.Filename = ""
	gone := must(w.Operator.ForgetBackups(w.ctx, q))(t)
	if len(gone) != 1 || gone[0].Filename != list[0].Filename {
		t.Errorf("%+v are forgotten", gone)
	}
	equal(t, "asked again", len(must(w.Operator.ForgetBackups(w.ctx, q))(t)), 0)
	equal(t, "left", len(w.backups(w.reached(db.ID))), 1)
	equal(t, "in the log", w.logged(db.ID, audit.BackupForgotten), 1)
	w.wantFindings()
	q.Order.Reason = ""
	refused(t, errOf(w.Operator.ForgetBackups(w.ctx, q)), fault.ValidationError)
}

// What an operation left of which the metadata know nothing is closed once an operator has said that they count, and not before.
func TestWhatIsLeftOfAnOperationWithoutARecord(t *testing.T) {
	w, db := treated(t)
	restore := w.store.Backup()
	o := must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	w.runOnce() // it runs at the server from now on
	restore()
	repair := func() (list []checkups.Diagnosis) { return w.examined(checkups.Options{Repair: true}) }
	for _, d := range repair() {
		if d.Code == doctor.JobLeft && d.Repair() != doctor.Nothing {
			t.Errorf("it is repaired before the metadata count: %v", d)
		}
	}
	ok(t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
	closed := false
	for _, d := range repair() {
		closed = closed || d.Code == doctor.JobLeft && d.Repaired && d.OperationID == o.ID
	}
	equal(t, "closed", closed, true)
	w.wantFindings()
	agent := must(w.fleet.Agent(w.machine))(t)
	late := ports.Tell(w.ctx, agent, ports.Fence{OperationID: o.ID, Epoch: 1}, command.SetAccess{DatabaseID: db.ID, Generation: 99})
	equal(t, "its commands are refused", command.RefusedFor(late, command.ReasonClosed), true)
}

// A database that has moved since is the other server's again, unless both have it.
func TestADatabaseThatHasMovedSinceIsAdopted(t *testing.T) {
	w := newWorld(t)
	w.movable()
	other := w.other()
	w.clock.Advance(1)
	restore := w.store.Backup()
	must(w.moves(w.ControlPlane))(t)
	w.work(w.ControlPlane)
	wantMoved(w, "succeeded")
	restore()
	for _, s := range must(w.Operator.Servers(w.ctx))(t) {
		ok(t, w.Operator.ConfirmMetadata(w.ctx, s, anOrder))
	}
	q := adoptions.Asked{Server: other.ID, Database: "shop", Order: anOrder}
	dropping := q
	dropping.Drop = true
	refused(t, errOf(w.Operator.Adopt(w.ctx, dropping)), fault.DatabaseStateConflict)
	w.home().SetUnreachable(true)
	refused(t, errOf(w.Operator.Adopt(w.ctx, q)), fault.AgentError)
	w.home().SetUnreachable(false)
	equal(t, "server", w.reached(w.source()).Record().ServerID, w.machine.ID)

	done := must(w.Operator.Adopt(w.ctx, q))(t)
	equal(t, "the operation", done.Operation.ID, id.OperationID(""))
	equal(t, "the notes name its host", strings.Contains(strings.Join(done.Notes, "\n"), other.PublicHost), true)
	w.wantAt(other.ID)
	w.wantNothingFound()
	refused(t, errOf(w.Operator.Adopt(w.ctx, q)), fault.DatabaseStateConflict)
	w.ordered(w.source(), database.Stop)
	w.ordered(w.source(), database.Start)
}
