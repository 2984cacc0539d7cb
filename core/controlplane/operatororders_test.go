package controlplane_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// grace is an operator with a reason.
var grace = operation.Order{By: "grace", Reason: "a ticket"}

// byGrace demands entries of the activity log that name the operator and why.
func (w *world) byGrace(db id.DatabaseID, actions ...audit.Action) {
	w.t.Helper()
	for _, what := range actions {
		found := 0
		for _, e := range w.log(db) {
			if e.Action == what && e.Actor == audit.Operator && e.Details["operator"] == "grace" && e.Details["reason"] == "a ticket" {
				found++
			}
		}
		equal(w.t, string(what)+" by the operator", found, 1)
	}
}

// ordered has an operator start or stop a database.
func (w *world) ordered(db id.DatabaseID, action database.Event) {
	w.t.Helper()
	_, o, err := w.Operator.SetLifecycle(w.ctx, db, action, grace)
	ok(w.t, err)
	if o == nil {
		w.t.Fatalf("nothing is done to %s it", action)
	}
	w.work(w.ControlPlane)
	equal(w.t, "the operation", w.operation(o.ID).Status, operation.Succeeded)
}

func TestAnOperatorStopsAndStartsADatabase(t *testing.T) {
	w := newWorld(t)
	c := w.made("shop")
	db := c.Record.ID
	w.ordered(db, database.Stop)
	equal(t, "status", w.status(db), database.Stopped)
	w.letsIn("stopped", c, false)
	status, o, err := w.Operator.SetLifecycle(w.ctx, db, database.Stop, grace)
	ok(t, err)
	equal(t, "stopped again", o == nil && status == database.Stopped, true)
	w.ordered(db, database.Start)
	w.letsIn("started", c, true)
	w.byGrace(db, audit.DatabaseStopped, audit.DatabaseStarted)

	stop := func(by operation.Order) error {
		_, _, err := w.Operator.SetLifecycle(w.ctx, db, database.Stop, by)
		return err
	}
	refused(t, stop(operation.Order{By: "grace"}), fault.ValidationError)
	must(w.Backups.Start(w.ctx, w.reached(db)))(t)
	refused(t, stop(grace), fault.DatabaseStateConflict)
}

func TestAnOperatorBacksUpAndRestores(t *testing.T) {
	for _, model := range database.Managed.Values() {
		w := newRestoreWorld(t, model)
		db := w.latest.Record.ID
		more := must(w.Operator.BackUp(w.ctx, db, grace))(t)
		w.work(w.ControlPlane)
		equal(t, "the backup", w.operation(more.ID).Status, operation.Succeeded)
		w.byGrace(db, audit.BackupRequested)
		refused(t, errOf(w.Operator.Restore(w.ctx, db, "20200101_000000.sql.gz", restore.Consents{}, grace)),
			map[database.RoleModel]fault.Code{
				database.Managed: fault.ManagedRoleConflict, database.SingleLogin: fault.BackupNotFound,
			}[model])
		o := must(w.Operator.Restore(w.ctx, db, w.backedUp(), restore.Consents{}, grace))(t)
		w.work(w.ControlPlane)
		equal(t, "the restore", w.operation(o.ID).Status, operation.Succeeded)
		equal(t, "what the backup had not", w.server.HasTable("shop", "after"), false)
		w.letsIn("restored", w.latest, true)
		w.byGrace(db, audit.RestoreRequested, audit.RestoreFinished)
	}
}

// What an operator does to a database of a suspended account leaves it closed, and the resumption finds it as it then is.
func TestOrdersInASuspendedAccount(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	db := w.latest.Record.ID
	w.suspends()
	w.later(2 * time.Second)
	must(w.Operator.BackUp(w.ctx, db, grace))(t)
	w.work(w.ControlPlane)
	w.ordered(db, database.Stop)
	w.ordered(db, database.Start)
	w.letsIn("started", w.latest, false)
	must(w.Operator.Restore(w.ctx, db, w.oldestBackup(db), restore.Consents{}, grace))(t)
	w.work(w.ControlPlane)
	w.letsIn("restored", w.latest, false)
	w.ordered(db, database.Stop)
	toldWhy(t, errOf(w.Operator.CreateDatabase(w.ctx, w.account.ID, request("more"), "", grace)))
	toldWhy(t, errOf(w.Operator.CloneDatabase(w.ctx, db, clone.Request{Name: "more", DisplayName: "More"}, "", grace)))
	w.resumes()
	w.later(2 * time.Second)
	w.letsIn("resumed, and stopped", w.latest, false)
	w.ordered(db, database.Start)
	w.letsIn("started", w.latest, true)
}

func (w *world) oldestBackup(db id.DatabaseID) backup.Filename {
	w.t.Helper()
	list := must(w.Operator.Backups(w.ctx, ports.BackupFilter{DatabaseID: db}, ports.Page{}))(w.t)
	return list[len(list)-1].Filename
}

func TestAnOperatorMakesADatabaseOnAServer(t *testing.T) {
	w := newWorld(t)
	roomy, second := w.another("roomy", 0)
	orders := func(name string, on id.ServerID) (databases.Created, error) {
		return w.Operator.CreateDatabase(w.ctx, w.account.ID, request(name), on, grace)
	}
	c := must(orders("shop", w.machine.ID))(t)
	equal(t, "its server", c.Record.ServerID, w.machine.ID)
	w.letsIn("it", c, true)
	w.byGrace(c.Record.ID, audit.DatabaseCreated)
	equal(t, "where none is named", must(orders("blog", ""))(t).Record.ServerID, roomy.ID)
	refused(t, errOf(w.Operator.CreateDatabase(w.ctx, w.account.ID, request("x"), "", operation.Order{})), fault.ValidationError)

	second.SetUnreachable(true)
	refused(t, errOf(orders("far", roomy.ID)), fault.AgentError)
	equal(t, "made elsewhere", len(w.server.Databases()), 1)
	equal(t, "databases", w.databases(), 2)
	second.SetUnreachable(false)

	for why, change := range map[string]func(*server.Server){
		"is disabled":                     func(s *server.Server) { s.Enabled = false },
		"is full: it has 1 databases":     func(s *server.Server) { s.Capacity = 1 },
		"has not enough connections free": func(s *server.Server) { s.Connections = 65 },
	} {
		was := w.machine
		must(w.Operator.ChangeServer(w.ctx, was.ID, change))(t)
		err := errOf(orders("more", was.ID))
		if refused(t, err, fault.ValidationError); !strings.Contains(err.Error(), "one "+why) {
			t.Errorf("%v, want %q", err, why)
		}
		must(w.Operator.ChangeServer(w.ctx, was.ID, func(s *server.Server) { *s = was }))(t)
	}
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Away(ctx, w.machine.ID, w.clock.Now())
	}))
	if err := errOf(orders("more", w.machine.ID)); err == nil || !strings.Contains(err.Error(), "has not answered since") {
		t.Errorf("a server that is away: %v", err)
	}
}

// A clone that an operator orders needs no gate, and is on the server that is named: also where its source's has room.
func TestAnOperatorClonesADatabaseToAServer(t *testing.T) {
	w := newWorld(t)
	w.restorable(database.Managed)
	two, there := w.another("two", 0)
	orders := func(name string, on id.ServerID, by operation.Order) (clones.Started, error) {
		return w.Operator.CloneDatabase(w.ctx, w.source(), clone.Request{Name: name, DisplayName: "A copy"}, on, by)
	}
	s := must(orders("copy", two.ID, grace))(t)
	equal(t, "its server", s.Clone.Record.ServerID, two.ID)
	w.work(w.ControlPlane)
	equal(t, "the clone", w.operation(s.Operation.ID).Status, operation.Succeeded)
	equal(t, "what it has", there.HasTable("copy", "after"), true)
	equal(t, "its password", there.CanLogIn(customer, "copy", s.Clone.Username, s.Clone.Password), true)
	w.byGrace(w.source(), audit.CloneRequested)
	w.byGrace(s.Clone.Record.ID, audit.DatabaseCreated)
	beside := must(orders("beside", "", grace))(t)
	equal(t, "where none is named", beside.Clone.Record.ServerID, w.machine.ID)
	w.work(w.ControlPlane)

	refused(t, errOf(orders("more", two.ID, operation.Order{By: "grace"})), fault.ValidationError)
	refused(t, errOf(orders("copy", two.ID, grace)), fault.ValidationError)
	refused(t, errOf(w.Operator.CloneDatabase(w.ctx, "none", clone.Request{Name: "more", DisplayName: "More"}, "", grace)),
		fault.DatabaseNotFound)
	for why, change := range map[string]func(*server.Server){
		"is disabled":          func(s *server.Server) { s.Enabled = false },
		"has PostgreSQL 17":    func(s *server.Server) { s.PostgresVersion = 17 },
		"is full: it has 1 da": func(s *server.Server) { s.Capacity = 1 },
	} {
		must(w.Operator.ChangeServer(w.ctx, two.ID, change))(t)
		err := errOf(orders("more", two.ID, grace))
		if refused(t, err, fault.ValidationError); !strings.Contains(err.Error(), "server: two "+why) {
			t.Errorf("%v, want %q", err, why)
		}
		must(w.Operator.ChangeServer(w.ctx, two.ID, func(s *server.Server) { *s = two }))(t)
	}
	equal(t, "databases", w.databases(), 3)
}
