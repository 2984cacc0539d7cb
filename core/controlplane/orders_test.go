package controlplane_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/ports"
)

var anOrder = operation.Order{By: "ada", Reason: "its machine burned"}

func gone(by operation.Order) operation.Order { by.ServerGone = true; return by }

// openOnes are the open operations of all databases.
func (w *world) openOnes() []ports.FoundOperation {
	w.t.Helper()
	return must(w.Operator.FindOperations(w.ctx, ports.OperationFilter{
		Statuses: []operation.Status{operation.Queued, operation.Running},
	}, ports.Page{}))(w.t)
}

// tried has workers make a few attempts.
func (w *world) tried() {
	w.t.Helper()
	for range 8 {
		must(w.Work.RunNext(w.ctx))(w.t)
		w.clock.Advance(time.Second)
	}
}

// recordOf is the status of a database; empty where there is no record of it.
func (w *world) recordOf(db id.DatabaseID) (s database.Status) {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, db)
		if s = r.Status; errors.Is(err, ports.ErrNoRow) {
			return nil
		}
		return err
	}))
	return s
}

// lostForGood is what an operator does about a server that is gone, before any order.
func (w *world) lostForGood() {
	w.t.Helper()
	w.server.SetUnreachable(true)
	off := false
	must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Enabled: &off}))(w.t)
}

// The way out of each kind, from where its agent holds it up: how the operation ends, and as what its database stays; nothing,
// where its record is gone. In brackets what other records there are.
var waysOut = []struct {
	name  string
	at    string // the call that is refused for now; empty: nobody has begun
	begin func(w *world)
	fail  string // where the server is there
	gone  string // where it is gone
}{
	{"create", "EnsureDatabase", func(w *world) {
		_, _ = w.Databases.Create(w.ctx, w.caller, request("shop"))
	}, "failed ", "failed "},
	{"adopt", "SetAccess", func(w *world) {
		w.unknown()
		must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(w.t)
	}, "failed ", "failed "},
	{"backup", "", func(w *world) { w.started() }, "failed active", "failed active"},
	{"backup, asked", "Backup", func(w *world) { w.started() }, "failed active", "failed active"},
	{"stop", "SetAccess", func(w *world) {
		_, _ = w.Databases.SetLifecycle(w.ctx, w.reached(w.made("shop").Record.ID), database.Stop)
	}, "failed active", "failed error"},
	{"timeouts", "Configure", func(w *world) {
		_, _ = w.setsTimeouts(w.made("shop").Record.ID, querytimeout.Short, "once")
	}, "failed active", "failed active"},
	{"extension", "ChangeExtension", func(w *world) {
		w.readyForExtensions()
		w.installing()
	}, "failed active", "failed active"},
	{"restore", "Load", func(w *world) {
		w.restorable(database.SingleLogin)
		w.restoring()
	}, "failed active", "failed active"},
	{"restore, switching", "Switch", func(w *world) {
		w.restorable(database.SingleLogin)
		w.restoring()
	}, "failed active", "failed error"},
	{"restore, switched", "Discard", func(w *world) {
		w.restorable(database.SingleLogin)
		w.restoring()
	}, "succeeded active", "failed error"},
	{"managed restore", "", func(w *world) {
		w.restorable(database.Managed)
		w.reserved()
	}, "failed active", "failed active"},
	{"managed restore, ready", "", func(w *world) {
		w.restorable(database.Managed)
		w.until(w.reserved().ID, restore.Ready)
	}, "canceled active", "failed active"},
	{"clone", "Load", func(w *world) {
		w.clonable()
		w.cloned("")
	}, "failed active", "failed active"},
	{"rescue", "Rescue", func(w *world) {
		w.clonable()
		must(w.rescuing(nil))(w.t)
	}, "failed active", "failed active"},
	{"comparison", "CompareMoments", func(w *world) {
		w.clonable()
		must(w.Looks.Compare(w.ctx, w.forClone(), recovery.Between{From: w.then, To: w.then.Add(time.Second)}))(w.t)
	}, "failed active", "failed active"},
	{"search", "FindMoment", func(w *world) {
		w.clonable()
		must(w.Looks.Search(w.ctx, w.forClone(), recovery.Find{Query: "SELECT 1", Until: "= 1", From: &w.then}))(w.t)
	}, "failed active", "failed active"},
	{"clone, switched", "Discard", func(w *world) {
		w.clonable()
		w.cloned("")
	}, "succeeded active (active)", "failed active"},
	{"delete", "", func(w *world) {
		w.deletable()
		must(w.deletes(w.ControlPlane, w.source()))(w.t)
	}, "failed active", "succeeded deleted"},
	{"delete, backing up", "Backup", func(w *world) {
		w.deletable()
		must(w.deletes(w.ControlPlane, w.source()))(w.t)
	}, "failed active", "succeeded deleted"},
	{"delete, isolating", "Isolate", func(w *world) {
		w.deletable()
		must(w.deletes(w.ControlPlane, w.source()))(w.t)
	}, "failed active", "succeeded deleted"},
	{"recover", "Rejoin", func(w *world) {
		w.deletable()
		w.deleted(w.source())
		must(w.recovers(w.ControlPlane, w.source()))(w.t)
	}, "failed deleted", "failed deleted"},
	{"purge", "Purge", func(w *world) {
		w.deletable()
		w.deleted(w.source())
		w.clock.Advance(rule.DefaultWindow)
		w.rounds(w.ControlPlane)
	}, "failed active", "succeeded "},
	{"rotate", "ChangeLogin", func(w *world) { w.changing("ChangeLogin", asks(role.Rotation)) }, "failed active", "failed active"},
	{"revoke", "ChangeLogin", func(w *world) { w.changing("ChangeLogin", asks(role.Revocation)) }, "failed active", "failed active"},
	{"expire", "ChangeLogin", func(w *world) {
		w.changing("ChangeLogin", func(of *roleWorld, cp *controlplane.ControlPlane, r role.Role) {
			past(of, r)
			expires(of, cp, r)
		})
	}, "failed active", "failed active"},
	{"remove", "RemoveRole", func(w *world) { w.changing("RemoveRole", deletes) }, "failed active", "failed active"},
}

// changing does something to a role whose password is good for an hour, while the server refuses a call for now.
func (w *world) changing(at string, act func(*roleWorld, *controlplane.ControlPlane, role.Role)) {
	w.t.Helper()
	of := managed(w)
	of.passwordsEnd(time.Hour)
	r := of.role("report").Role
	w.refusing(at, command.ReasonUnavailable)
	act(of, w.ControlPlane, r)
}

func TestEveryKindHasAWayOut(t *testing.T) {
	shown := map[operation.Kind]bool{}
	for _, c := range waysOut {
		for mode, want := range map[string]string{"there": c.fail, "gone": c.gone} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				w := newWorld(t)
				if c.at == "EnsureDatabase" || c.at == "SetAccess" || c.at == "Configure" {
					w.made("warm")
					w.refusing(c.at, command.ReasonUnavailable)
				}
				c.begin(w)
				if c.at != "" {
					w.refusing(c.at, command.ReasonUnavailable)
					w.tried()
				}
				open := w.openOnes()
				if len(open) != 1 || open[0].ServerName != "one" {
					t.Fatalf("%+v", open)
				}
				shown[open[0].Kind] = true
				w.server.OnCall(nil)
				order := anOrder
				if mode == "gone" {
					refused(t, errOf(w.Operator.FailOperation(w.ctx, open[0].ID, gone(order))), fault.ValidationError)
					w.lostForGood()
					refused(t, errOf(w.Operator.FailOperation(w.ctx, open[0].ID, order)), fault.AgentError)
					order = gone(order)
				}
				ended := must(w.Operator.FailOperation(w.ctx, open[0].ID, order))(t)
				equal(t, "ended", w.endOf(ended), want)
				equal(t, "open", len(w.openOnes()), 0)
				w.wantOrder(ended, audit.OperationEndOrder)
				refused(t, errOf(w.Operator.FailOperation(w.ctx, open[0].ID, anOrder)), fault.DatabaseStateConflict)
				if ended.Status == operation.Failed && mode == "there" && w.server.Copies() > 0 {
					t.Error("a copy is left")
				}
			})
		}
	}
	for _, k := range newWorld(t).Work.Names() {
		if !shown[k] && k != rebuilds.Kind && k != moves.Kind && k != rehearsals.Kind { // which have tests of their own
			t.Errorf("%s has no line in the table", k)
		}
	}
}

// endOf is an operation's status, that of its database, and that of a clone.
func (w *world) endOf(o operation.Operation) string {
	w.t.Helper()
	text := string(o.Status) + " " + string(w.recordOf(o.DatabaseID))
	for _, r := range w.listed(w.caller) {
		if r.Name == "copy" {
			text += " (" + string(r.Status) + ")"
		}
	}
	return text
}

// wantOrder demands that the log has the order with its reason.
func (w *world) wantOrder(o operation.Operation, what audit.Action) {
	w.t.Helper()
	var log []audit.Entry
	ok(w.t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		log, err = tx.Audit().List(ctx, o.DatabaseID, ports.Page{})
		return err
	}))
	i := slices.IndexFunc(log, func(e audit.Entry) bool { return e.Action == what })
	if i < 0 || log[i].Details["reason"] != anOrder.Reason || log[i].Details["operator"] != "ada" ||
		log[i].Details["operationId"] != string(o.ID) {
		w.t.Errorf("the log has no such order: %+v", log)
	}
}

// Nobody's work is ended behind his back: neither a worker's nor the server's.
func TestAnOrderWaitsForWhoWorks(t *testing.T) {
	w := newWorld(t)
	_, backup := w.started()
	w.inEveryCall("Backup", func() fakeagent.Fault {
		for _, order := range []func(context.Context, id.OperationID, operation.Order) (operation.Operation, error){
			w.Operator.FailOperation, w.Operator.RetryOperation,
		} {
			soon, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
			refused(t, errOf(order(soon, backup.ID, anOrder)), fault.DatabaseStateConflict)
			cancel()
		}
		return fakeagent.Fault{}
	})
	w.runOnce() // it runs at the server from now on
	refused(t, errOf(w.Operator.FailOperation(w.ctx, backup.ID, anOrder)), fault.DatabaseStateConflict)
	w.server.OnCall(nil)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(backup.ID).Status, operation.Succeeded)
}

// An order that the server does not carry out for now is in the log as an order, and workers go on with the operation.
func TestAnOrderIsNoEnd(t *testing.T) {
	w := newWorld(t)
	_, backup := w.started()
	w.refusing("Close", command.ReasonUnavailable)
	if _, err := w.Operator.FailOperation(w.ctx, backup.ID, anOrder); err == nil {
		t.Error("it has ended")
	}
	equal(t, "status", w.operation(backup.ID).Status, operation.Running)
	w.wantOrder(backup, audit.OperationEndOrder)
	w.server.OnCall(nil)
	w.clock.Advance(time.Minute)
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(backup.ID).Status, operation.Succeeded)
}

// An order that was logged is carried out, whatever becomes of who gave it: what the server has done for it would be undone.
func TestAnOrderOutlivesItsMandate(t *testing.T) {
	w := newWorld(t)
	w.deletable()
	w.deleted(w.source())
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	open := w.openOnes()
	over := true
	w.inEveryCall("Rejoin", func() fakeagent.Fault { over = true; return fakeagent.Fault{} })
	ctx := base.ByOperator(w.ctx, base.Mandate{Operator: "ada", Holds: func(context.Context, ports.Tx) error {
		if over {
			return person.ErrNoSession()
		}
		return nil
	}})
	refused(t, errOf(w.Operator.FailOperation(ctx, open[0].ID, anOrder)), fault.Unauthorized)
	equal(t, "open after a refusal", len(w.openOnes()), 1)
	over = false
	ended := must(w.Operator.FailOperation(ctx, open[0].ID, anOrder))(t)
	equal(t, "the session has ended", over, true)
	equal(t, "ended", w.endOf(ended), "failed active")
}

// A server is taken for gone only when it takes no new databases and nothing answers at its address.
func TestAServerThatIsNotGone(t *testing.T) {
	w := newWorld(t)
	_, backup := w.started()
	off := false
	must(w.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Enabled: &off}))(t)
	_, err := w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "it answers", err, "serverGone", "its agent answers")
	w.server.Shows(server.Survey{Protocol: command.Protocol, Installation: "another"})
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "another answers", err, "serverGone", "another server answers")
	says(t, err, "--agent-url https://gone.invalid --unchecked")
	w.server.Shows(server.Survey{Protocol: command.Protocol})
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "PostgreSQL is down", err, "serverGone", "its agent answers, and cannot say now which server it is")
	if strings.Contains(err.Error(), "--agent-url") {
		t.Error(err)
	}
	w.server.Shows(server.Survey{Agent: server.Reach{Trouble: server.Silent, Address: "https://one:1"}})
	w.answered(w.clock.Now().Add(time.Second - server.AnswerCounts))
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "batch hosts hear from it", err, "serverGone", "answered a batch host at 2026-01-05T09:28:",
		"seen from here, https://one:1 does not answer")
	unasked := server.Reach{Trouble: server.Sealed, Why: "no key"}
	w.server.Shows(server.Survey{Agent: unasked})
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "nobody was asked", err, "serverGone", "was not seen from here", "no key")
	w.server.Shows(server.Survey{Agent: server.Reach{Trouble: server.WrongSecret, At: netip.MustParseAddrPort("10.0.0.1:1")}})
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, gone(anOrder))
	refusedOn(t, "something answers", err, "serverGone", "something answers")
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, operation.Order{ServerGone: true})
	refusedOn(t, "without a reason", err, "reason")
	equal(t, "status", w.operation(backup.ID).Status, operation.Queued)
}

// answered has a batch host have heard from the server.
func (w *world) answered(at time.Time) {
	w.t.Helper()
	ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Answered(ctx, w.machine.ID, at, server.Answer{})
	}))
}

// Of a server that is not the operation's nothing is learnt: whether it has no job of it says nothing.
func TestAnOrderLooksAtTheRightServer(t *testing.T) {
	w := newWorld(t)
	_, backup := w.started()
	w.server.Shows(server.Survey{Protocol: command.Protocol, Installation: "another"})
	_, err := w.Operator.FailOperation(w.ctx, backup.ID, anOrder)
	refused(t, err, fault.AgentError)
	says(t, err, "another server answers than the one whose databases are known here: correct the URL; where it is gone")
	_, err = w.Operator.RetryOperation(w.ctx, backup.ID, anOrder)
	refused(t, err, fault.AgentError)
	if strings.Contains(err.Error(), "--server-gone") {
		t.Error(err)
	}
	w.server.Shows(server.Survey{Protocol: command.Protocol})
	_, err = w.Operator.FailOperation(w.ctx, backup.ID, anOrder)
	refused(t, err, fault.AgentError)
	says(t, err, "cannot say now which server it is")
	if strings.Contains(err.Error(), "--server-gone") {
		t.Error(err)
	}
	equal(t, "status", w.operation(backup.ID).Status, operation.Queued)
}

// What waits for its next attempt is taken up at once; what its callers drive is left to them.
func TestARetry(t *testing.T) {
	w := newWorld(t)
	_, backup := w.started()
	w.refusing("Backup", command.ReasonUnavailable)
	for range 5 {
		w.clock.Advance(time.Minute)
		w.runOnce()
	}
	w.server.OnCall(nil)
	equal(t, "claimed", must(w.Work.RunNext(w.ctx))(t), false)
	w.server.SetUnreachable(true)
	refused(t, errOf(w.Operator.RetryOperation(w.ctx, backup.ID, anOrder)), fault.AgentError)
	w.server.SetUnreachable(false)
	refused(t, errOf(w.Operator.RetryOperation(w.ctx, backup.ID, operation.Order{})), fault.ValidationError)
	w.wantOrder(must(w.Operator.RetryOperation(w.ctx, backup.ID, anOrder))(t), audit.OperationRetried)
	w.runOnce()
	w.work(w.ControlPlane)
	equal(t, "status", w.operation(backup.ID).Status, operation.Succeeded)
	refused(t, errOf(w.Operator.RetryOperation(w.ctx, backup.ID, anOrder)), fault.DatabaseStateConflict)

	driven := newRestoreWorld(t, database.Managed)
	o := driven.reserved()
	must(driven.advance(driven.ControlPlane, o.ID))(t)
	refused(t, errOf(driven.Operator.RetryOperation(driven.ctx, o.ID, anOrder)), fault.DatabaseStateConflict)
}

// A server that is gone for good can be forgotten: its operations end, its databases are deleted and purged.
func TestAServerThatIsGoneIsForgotten(t *testing.T) {
	w := newDeletionWorld(t)
	shop := w.source()
	other := must(w.Operator.AddServer(w.ctx, newServer("two")))(t)
	must(w.Backups.Start(w.ctx, w.reached(shop)))(t)
	w.work(w.ControlPlane)
	must(w.Backups.Start(w.ctx, w.reached(shop)))(t)
	w.lostForGood()
	fails := func() {
		t.Helper()
		w.tried()
		open := w.openOnes()
		equal(t, "open", len(open), 1)
		must(w.Operator.FailOperation(w.ctx, open[0].ID, gone(anOrder)))(t)
	}
	fails()
	must(w.Operator.DeleteUnverified(w.ctx, shop, "ada", anOrder.Reason))(t)
	fails()
	equal(t, "recovery", w.tombstone().Status, rule.Unavailable)
	w.clock.Advance(rule.DefaultWindow)
	w.rounds(w.ControlPlane)
	_, err := w.Operator.RemoveServer(w.ctx, w.machine.ID)
	refusedOn(t, "before the purge", err, "server", "1 deleted database", "1 backup", "1 open operation")
	fails()
	must(w.Operator.RemoveServer(w.ctx, w.machine.ID))(t)
	equal(t, "the name is free", w.made("shop").Record.ServerID, other.ID)
}

// Unknown IDs are no empty lists.
func TestFindingOperations(t *testing.T) {
	w := newWorld(t)
	shop := w.made("shop").Record.ID
	find := func(f ports.OperationFilter) ([]ports.FoundOperation, error) {
		return w.Operator.FindOperations(w.ctx, f, ports.Page{})
	}
	none := id.FromBytes[id.ServerID](fakeentropy.New().UUID())
	refused(t, errOf(find(ports.OperationFilter{ServerID: none})), fault.ValidationError)
	_, err := find(ports.OperationFilter{Kind: "upload"})
	refusedOn(t, "no kind", err, "kind", "create, lifecycle, ")
	running := ports.OperationFilter{DatabaseID: shop, Statuses: []operation.Status{operation.Running}}
	equal(t, "none is open", len(must(find(running))(t)), 0)
	list := must(find(ports.OperationFilter{DatabaseID: shop, ServerID: w.machine.ID, Kind: "create"}))(t)
	equal(t, "creations", len(list), 1)
	equal(t, "of", list[0].DatabaseName+" on "+list[0].ServerName, "shop on one")
}

// An ID names a database while something of it is on record: its operations may be pruned while it lives, and outlive it.
func TestDatabasesOfThePast(t *testing.T) {
	w := newDeletionWorld(t)
	shop := w.source()
	named := func() error { return errOf(w.Operator.PastDatabaseNamed(w.ctx, "database", string(shop))) }
	operations := func() int {
		return len(must(w.Operator.FindOperations(w.ctx, ports.OperationFilter{DatabaseID: shop}, ports.Page{}))(t))
	}
	outlived := func() {
		w.clock.Advance(401 * 24 * time.Hour)
		w.rounds(w.ControlPlane)
		equal(t, "operations", operations(), 0)
	}
	outlived()
	ok(t, named())
	w.deleted(shop)
	w.purged(w.ControlPlane)
	equal(t, "record", w.recordOf(shop), "")
	ok(t, named())
	outlived()
	refusedOn(t, "nothing is left", named(), "database", "does not exist")
}

// A change of a login on a server that is gone ends without a look at the login, which keeps its password on record.
func TestAChangeOnAServerThatIsGone(t *testing.T) {
	w := newRoleWorld(t)
	r := w.role("report")
	w.server.SetUnreachable(true)
	change := must(w.change(r.ID, role.Rotation, "key"))(t)
	by := operation.Order{By: "ada", Reason: anOrder.Reason, ServerGone: true}
	refused(t, errOf(w.Operator.EndChange(w.ctx, w.db, change.ID, by)), fault.ValidationError)
	w.lostForGood()
	equal(t, "found", must(w.Operator.EndChange(w.ctx, w.db, change.ID, by))(t).Found, role.Unseen)
	w.is(r.ID, role.Ready)
}
