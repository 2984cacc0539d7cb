package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// unknown has the metadata go back to before the database "shop" was made.
func (w *world) unknown() {
	w.t.Helper()
	restore := w.store.Backup()
	w.made("shop")
	w.back(restore)
}

// back has the metadata go back, and an operator say that they count.
func (w *world) back(restore func()) {
	w.t.Helper()
	restore()
	ok(w.t, w.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder))
}

// adopting asks for a database of the world's server by its name, or its ID.
func (w *world) adopting(text string) adoptions.Asked {
	return adoptions.Asked{Server: w.machine.ID, Database: text, Order: anOrder}
}

// lived is a database with everything that a server knows of one, of which the metadata then know nothing.
func lived(t *testing.T) (*world, database.Record) {
	t.Helper()
	w := newWorld(t)
	restore := w.store.Backup()
	db := w.made("shop").Record
	must(w.setsTimeouts(db.ID, querytimeout.Short, "one"))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db.ID), customer.String()+"/32", ""))(t)
	must(w.Allowlist.Add(w.ctx, w.reached(db.ID), office, ""))(t)
	shop := w.forRoles(db.ID)
	for _, one := range []string{"reports", "gone"} {
		must(w.Roles.Create(w.ctx, shop, wanted(one)))(t)
	}
	list := must(w.Roles.List(w.ctx, shop, false))(t)
	must(w.Roles.Change(w.ctx, shop, list[1].ID, role.Revocation, "revoked"))(t)
	w.work(w.ControlPlane)
	must(w.Backups.Start(w.ctx, w.reached(db.ID)))(t)
	w.work(w.ControlPlane)
	w.wantFindings()
	w.back(restore)
	w.wantFindings(doctor.DatabaseUnknown, doctor.FileUnknown)
	return w, db
}

// What the server knows of a database comes back with its record: who gets in goes on to, and the doctor finds only the passwords
// that nobody knows, and the backups. Asked again, it is the same adoption.
func TestADatabaseIsAdopted(t *testing.T) {
	w, db := lived(t)
	done := must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(t)
	again := must(w.Operator.Adopt(w.ctx, w.adopting(string(db.ID))))(t)
	equal(t, "the operation, asked again", again.Operation.ID, done.Operation.ID)
	equal(t, "notes, asked again", strings.Join(again.Notes, "\n"), strings.Join(done.Notes, "\n"))
	w.work(w.ControlPlane)
	w.rounds(w.ControlPlane)
	equal(t, "the operation", w.operation(done.Operation.ID).Status, operation.Succeeded)
	equal(t, "the operation, asked at the end",
		must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(t).Operation.ID, done.Operation.ID)

	r := w.reached(db.ID).Record()
	equal(t, "account", r.AccountID, db.AccountID)
	equal(t, "status", r.Status, database.Active)
	equal(t, "cap", r.ConnectionCap, db.ConnectionCap)
	equal(t, "timeouts", r.TimeoutProfile, querytimeout.Short)
	equal(t, "networks", len(w.server.Networks("shop")), 2)
	equal(t, "logs in", w.logsIn(w.latest), true)
	shop := w.forRoles(db.ID)
	list := must(w.Roles.List(w.ctx, shop, true))(t)
	if len(list) != 2 || list[0].Status != role.Ready || list[1].Status != role.Revoked {
		t.Errorf("the roles are %+v", list)
	}
	w.wantFindings(doctor.FileUnknown, doctor.PasswordDiffers)
}

// What the agent has is looked at before anything is stored, and what is not this service's is left alone.
func TestWhatIsNotAdopted(t *testing.T) {
	w, db := lived(t)
	fails := func(code fault.Code, change func(*adoptions.Asked)) {
		t.Helper()
		q := w.adopting("shop")
		change(&q)
		refused(t, errOf(w.Operator.Adopt(w.ctx, q)), code)
		equal(t, "databases", w.databases(), 0)
	}
	other, _, _ := w.newAccount("other@example.org", account.Pro)
	fails(fault.ValidationError, func(q *adoptions.Asked) { q.Database = "nothing" })
	fails(fault.ValidationError, func(q *adoptions.Asked) { q.Order.Reason = "" })
	fails(fault.ValidationError, func(q *adoptions.Asked) { q.Account = other.ID })
	fails(fault.ValidationError, func(q *adoptions.Asked) { q.Server = "none" })
	same, dropped := func(*adoptions.Asked) {}, func(q *adoptions.Asked) { q.Drop = true }
	w.server.SetUnreachable(true)
	fails(fault.AgentError, same)
	w.server.SetUnreachable(false)
	for _, change := range []func(*command.InventoryDatabase){
		func(d *command.InventoryDatabase) { d.Actual.Owner = "somebody" },
		func(d *command.InventoryDatabase) { d.Actual.Name = "another" },
	} {
		w.server.Lists(change)
		fails(fault.DatabaseStateConflict, same)
		fails(fault.DatabaseStateConflict, dropped)
	}
	w.server.Lists(func(d *command.InventoryDatabase) { d.BackupKeyMark = "another" })
	fails(fault.AgentError, same)
	w.server.Lists(func(d *command.InventoryDatabase) { d.Made = false })
	fails(fault.DatabaseStateConflict, same)
	w.server.Lists(func(d *command.InventoryDatabase) { d.AccountID = "" })
	fails(fault.ValidationError, same)
	w.server.Lists(nil)
	equal(t, "logs in", w.logsIn(w.latest), true)
	equal(t, "log", len(w.log(db.ID)), 0)
}

// Of what has a record no server is asked, and a name that another record has is not given twice.
func TestARecordIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	known := w.made("known").Record
	refused(t, errOf(w.Operator.Adopt(w.ctx, w.adopting("known"))), fault.DatabaseStateConflict)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Operator.Adopt(w.ctx, w.adopting(string(known.ID)))), fault.DatabaseStateConflict)
	w.server.SetUnreachable(false)

	w.unknown()
	w.server.Lists(func(d *command.InventoryDatabase) {
		if d.Name == "shop" {
			d.Name, d.Actual.Name = "known", "known"
		}
	})
	refused(t, errOf(w.Operator.Adopt(w.ctx, w.adopting(string(w.latest.Record.ID)))), fault.ValidationError)
	equal(t, "databases", w.databases(), 1)
}

// An account that the metadata lack does not keep a database from being adopted by another one.
func TestADatabaseOfAnAccountThatIsLacking(t *testing.T) {
	w := newWorld(t)
	restore := w.store.Backup()
	_, _, w.caller = w.newAccount("later@example.org", account.Pro)
	db := w.made("shop").Record
	w.back(restore)
	w.caller = w.admit(w.key)
	q := w.adopting("shop")
	refused(t, errOf(w.Operator.Adopt(w.ctx, q)), fault.ValidationError)
	q.Account = w.account.ID
	must(w.Operator.Adopt(w.ctx, q))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.status(db.ID), database.Active)
	equal(t, "account at the agent", w.server.AccountOf(db.ID), w.account.ID)
}

// What is dropped is deleted as any other database: with a backup, recoverable, and purged when its time is over.
func TestAnUnknownDatabaseIsDropped(t *testing.T) {
	for name, bare := range map[string]bool{"with a backup": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			w, db := lived(t)
			dropping := w.adopting("shop")
			dropping.Drop, dropping.Bare = true, bare
			must(w.Operator.Adopt(w.ctx, dropping))(t)
			w.work(w.ControlPlane)
			equal(t, "status", w.recordOf(db.ID), database.Deleted)
			files := map[bool]int{false: 2, true: 1}[bare]
			equal(t, "files", w.server.Files(), files)
			must(w.Operator.Undelete(w.ctx, db.ID, "ada", "it was needed"))(t)
			w.work(w.ControlPlane)
			equal(t, "logs in", w.logsIn(w.latest), true)
		})
	}
}

// One that its server has out of service becomes a deleted one, which can be had back, and is purged otherwise.
func TestADeletedDatabaseIsAdopted(t *testing.T) {
	for _, drop := range []bool{false, true} {
		w := newWorld(t)
		restore := w.store.Backup()
		w.deletable()
		db := w.source()
		w.deleted(db)
		w.back(restore)
		w.wantFindings(doctor.DatabaseUnknown, doctor.FileUnknown)
		q := w.adopting("shop")
		q.Drop = drop
		must(w.Operator.Adopt(w.ctx, q))(t)
		w.work(w.ControlPlane)
		equal(t, "status", w.recordOf(db), database.Deleted)
		w.wantFindings(doctor.FileUnknown, doctor.PasswordDiffers)
		if !drop {
			must(w.Operator.Undelete(w.ctx, db, "ada", "it was needed"))(t)
			w.work(w.ControlPlane)
			equal(t, "logs in", w.logsIn(w.latest), true)
			continue
		}
		w.purged(w.ControlPlane)
		equal(t, "databases on the server", len(w.server.Databases()), 0)
		w.wantFindings()
	}
}

// What is not whole is not adopted, and can be dropped: nothing is left of it in the end.
func TestWhatIsNotWholeIsDropped(t *testing.T) {
	w := newWorld(t)
	w.unknown()
	db := w.latest.Record.ID
	w.server.Lists(func(d *command.InventoryDatabase) { d.Actual = nil })
	refused(t, errOf(w.Operator.Adopt(w.ctx, w.adopting("shop"))), fault.DatabaseStateConflict)
	q := w.adopting("shop")
	q.Drop = true
	must(w.Operator.Adopt(w.ctx, q))(t)
	w.work(w.ControlPlane)
	equal(t, "status", w.recordOf(db), database.Deleted)
	w.server.Lists(nil)
	w.purged(w.ControlPlane)
	equal(t, "databases on the server", len(w.server.Databases()), 0)
}

// Two at the same time make one record.
func TestADatabaseIsAdoptedOnce(t *testing.T) {
	w, db := lived(t)
	all := make(chan operation.Operation, 4)
	for range cap(all) {
		go func() {
			done, err := w.Operator.Adopt(w.ctx, w.adopting("shop"))
			if err != nil {
				t.Error(err)
			}
			all <- done.Operation
		}()
	}
	first := <-all
	for range cap(all) - 1 {
		if o := <-all; o.ID != first.ID {
			t.Errorf("%s, and %s", o.ID, first.ID)
		}
	}
	w.work(w.ControlPlane)
	equal(t, "adoptions", w.logged(db.ID, audit.DatabaseAdopted), 1)
}

// The files of an adopted database get their records once each was read. What is damaged has none, and stays.
func TestBackupsAreAdopted(t *testing.T) {
	w, db := lived(t)
	must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(t)
	w.work(w.ControlPlane)
	w.clock.Advance(400 * 24 * time.Hour) // long after their retention would have ended
	q := adoptions.AskedFiles{Database: db.ID, Order: anOrder}
	unknown := func() backup.Filename {
		t.Helper()
		for _, d := range w.examined(brief) {
			if d.Code == doctor.FileUnknown {
				_, name, _ := strings.Cut(d.Subject, "/")
				return backup.Filename(strings.TrimSuffix(name, ".set") + backup.FileSuffix)
			}
		}
		return ""
	}
	file := unknown()
	equal(t, "it rots", w.server.Rot(db.ID, file), true)
	list := must(w.Operator.AdoptBackups(w.ctx, q))(t)
	if len(list) != 1 || !fault.Has(list[0].Err, fault.BackupNotVerified) || list[0].Filename != file {
		t.Fatalf("of a damaged file: %+v", list)
	}
	equal(t, "adopted", len(w.backups(w.reached(db.ID))), 0)
	w.server.Rot(db.ID, file)
	for range 2 {
		q.Filename = file
		list = must(w.Operator.AdoptBackups(w.ctx, q))(t)
		if len(list) != 1 || list[0].Err != nil || list[0].VerifiedAt == nil {
			t.Fatalf("%+v", list)
		}
	}
	w.server.SetUnreachable(true) // which is not asked about what has a record
	equal(t, "known", len(must(w.Operator.AdoptBackups(w.ctx, q))(t)), 1)
	w.server.SetUnreachable(false)
	q.Filename = ""
	equal(t, "more", len(must(w.Operator.AdoptBackups(w.ctx, q))(t)), 0)
	w.rounds(w.ControlPlane)
	equal(t, "kept", len(w.backups(w.reached(db.ID))), 1)
	equal(t, "in the log", w.logged(db.ID, audit.BackupAdopted), 1)
	w.wantFindings(doctor.PasswordDiffers)

	q.Filename = "20200101_000000.sql.gz"
	refused(t, errOf(w.Operator.AdoptBackups(w.ctx, q)), fault.BackupNotFound)
	q.Database = "none"
	refused(t, errOf(w.Operator.AdoptBackups(w.ctx, q)), fault.DatabaseNotFound)
}

// Whatever the metadata and the server tell of a deletion, an operator ends it, and nothing differs any more.
func TestADeletionIsFinished(t *testing.T) {
	purge := func(w *world) {
		agent := must(w.fleet.Agent(w.machine))(t)
		ok(t, ports.Tell(w.ctx, agent, ports.Fence{OperationID: "another"}, command.Purge{DatabaseID: w.source()}))
	}
	for name, c := range map[string]struct {
		since  func(w *world) // what the metadata then know nothing of
		before func(w *world)
		status database.Status // afterwards; empty: there is no record
		files  int
	}{
		"deleted since": {since: func(w *world) { w.deleted(w.source()) }, status: database.Deleted, files: 1},
		"recovered since": {
			before: func(w *world) { w.deleted(w.source()) }, since: func(w *world) { w.recovered(w.source()) },
			status: database.Deleted, files: 2,
		},
		"purged since": {before: func(w *world) { w.deleted(w.source()) }, since: purge},
		"deleted and purged since": {since: func(w *world) {
			w.deleted(w.source())
			purge(w)
		}, status: database.Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletionWorld(t)
			if c.before != nil {
				c.before(w)
			}
			restore := w.store.Backup()
			c.since(w)
			w.back(restore)
			must(w.Operator.FinishDeletion(w.ctx, w.source(), anOrder))(t)
			w.work(w.ControlPlane)
			equal(t, "status", w.recordOf(w.latest.Record.ID), c.status)
			equal(t, "files", w.server.Files(), c.files)
			if name == "deleted since" { // whose backup nobody knows
				must(w.Operator.AdoptBackups(w.ctx, adoptions.AskedFiles{Database: w.source(), Order: anOrder}))(t)
			}
			w.wantFindings()
		})
	}
}

// One of which both tell the same is not deleted by this.
func TestADeletionThatNobodyHasBegun(t *testing.T) {
	w := newDeletionWorld(t)
	refused(t, errOf(w.Operator.FinishDeletion(w.ctx, w.source(), anOrder)), fault.DatabaseStateConflict)
	w.deleted(w.source())
	refused(t, errOf(w.Operator.FinishDeletion(w.ctx, w.source(), anOrder)), fault.DatabaseStateConflict)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Operator.FinishDeletion(w.ctx, w.source(), anOrder)), fault.AgentError)
	refused(t, errOf(w.Operator.FinishDeletion(w.ctx, "none", anOrder)), fault.DatabaseNotFound)
}

// An operator takes back an adoption that nobody has begun.
func TestAnAdoptionIsCanceled(t *testing.T) {
	w := newWorld(t)
	w.unknown()
	o := must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(t).Operation
	equal(t, "canceled", must(w.Operator.CancelOperation(w.ctx, o.ID))(t).Status, operation.Canceled)
	equal(t, "databases", w.databases(), 0)
	theAdoption.ended(w, operation.Canceled)
}
