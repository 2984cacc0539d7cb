package controlplane_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/extensions"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// flow is a kind of operations as the tests of what all kinds have in common drive it. What a kind has of its own is tested in
// its own file.
type flow struct {
	name    string
	kind    operation.Kind
	prepare func(w *world)
	begin   func(w *world, cp *controlplane.ControlPlane) // asks for the operation
	fails   func(w *world)                                // has the server refuse it for good; nil: it never fails
	during  string                                        // a call in which it is canceled; empty: it cannot be
	forward string                                        // the call that cannot be taken back; empty: there is none
	ended   func(w *world, end operation.Status)          // expects how it has ended
}

var theBackup = flow{
	name: "backup", kind: backups.Kind, during: "Backup",
	prepare: func(w *world) { w.made("shop") },
	begin: func(w *world, cp *controlplane.ControlPlane) {
		_, _ = cp.Backups.Start(w.ctx, w.reached(w.only().ID))
	},
	fails: func(w *world) { w.refusing("Backup", command.ReasonFailed) },
	ended: func(w *world, end operation.Status) {
		o, files := w.newest(), 0
		if end == operation.Succeeded {
			files = 1
		}
		equal(w.t, "status", o.Status, end)
		equal(w.t, "listed", len(w.backups(w.reached(w.only().ID))), files)
		w.expectEvent("backup."+string(end), o.ID)
	},
}

var theExtension = flow{
	name: "extension", kind: extensions.Kind, during: "ChangeExtension",
	prepare: (*world).readyForExtensions,
	begin: func(w *world, cp *controlplane.ControlPlane) {
		_, _ = cp.Extensions.Start(w.ctx, w.forExtensions(), install("citext", "once"))
	},
	fails: func(w *world) { w.refusing("ChangeExtension", command.ReasonFailed) },
	ended: func(w *world, end operation.Status) {
		o := w.newest()
		if w.server.Calls("ChangeExtension") > 1 && o.Status == operation.Succeeded {
			end = o.Status // it was told again, and done before it could be canceled
		}
		equal(w.t, "status", o.Status, end)
		equal(w.t, "installed", w.entry("citext").InstalledVersion != "", end == operation.Succeeded)
		w.expectEvent("extension."+string(end), o.ID)
	},
}

var theRestore = flow{
	name: "restore", kind: restores.Kind, during: "Load", forward: "Switch",
	prepare: func(w *world) { w.restorable(database.SingleLogin) },
	begin: func(w *world, cp *controlplane.ControlPlane) {
		_, _ = cp.Restores.Start(w.ctx, w.forRestore(), w.backedUp(), restore.Consents{})
	},
	fails: func(w *world) { w.server.FailLoads("a type is in the way") },
	ended: (*world).wantEnd,
}

func theClone(name string, fresh bool, begin func(w *world, cp *controlplane.ControlPlane)) flow {
	return flow{
		name: name, kind: clones.Kind, during: "Load", forward: "Switch",
		prepare: (*world).clonable, begin: begin,
		fails: func(w *world) { w.server.FailLoads("a type is in the way") },
		ended: func(w *world, end operation.Status) {
			w.wantClone(end, fresh)
			if end != operation.Succeeded {
				refused(w.t, errOf(w.cloning(w.ControlPlane, "")), fault.DatabaseStateConflict) // its key tells of that
				must(w.Databases.Create(w.ctx, w.caller, request("copy")))(w.t)
			}
		},
	}
}

var (
	theCloneOfNow = theClone("clone of now", true, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = w.cloning(cp, "")
	})
	theCloneOfBackup = theClone("clone of a backup", false, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = w.cloning(cp, w.copied())
	})
	theCloneElsewhere = onAnother(theClone("clone on another server", true, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = w.cloning(cp, "")
	}))
	theCloneOfThen = theClone("clone of a moment", false, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = w.cloningThen(cp, nil)
	})
)

var theDeletion = flow{
	name: "delete", kind: rule.KindDelete, during: "Backup", forward: "Isolate",
	prepare: (*world).deletable,
	begin:   func(w *world, cp *controlplane.ControlPlane) { _, _ = w.deletes(cp, w.latest.Record.ID) },
	fails:   func(w *world) { w.server.SetNotVerified("row 7 differs") },
	ended: func(w *world, end operation.Status) {
		if got := w.events(); !slices.Equal(got, []string{"delete." + string(end)}) {
			w.t.Errorf("events %v", got)
		}
		if end == operation.Succeeded {
			w.wantDeleted()
			equal(w.t, "files", w.server.Files(), 1)
			return
		}
		if end == operation.Failed {
			equal(w.t, "in the log", w.logged(w.source(), audit.DeleteFailed), 1)
		}
		w.wantLive(0)
	},
}

var theRecovery = flow{
	name: "recover", kind: rule.KindRecover, forward: "Rejoin",
	prepare: func(w *world) {
		w.deletable()
		w.deleted(w.source())
	},
	begin: func(w *world, cp *controlplane.ControlPlane) { _, _ = w.recovers(cp, w.source()) },
	fails: func(w *world) { w.refusing("Rejoin", command.ReasonFailed) },
	ended: func(w *world, end operation.Status) {
		equal(w.t, "events", w.events()[1], "recover."+string(end))
		if end != operation.Succeeded {
			w.wantDeleted()
			w.recovered(w.source())
		}
		w.wantLive(1)
	},
}

var thePurge = flow{
	name: "purge", kind: rule.KindPurge,
	prepare: func(w *world) {
		w.deletable()
		must(w.Backups.Start(w.ctx, w.reached(w.source())))(w.t)
		w.work(w.ControlPlane)
		w.deleted(w.source())
	},
	begin: func(w *world, cp *controlplane.ControlPlane) {
		w.clock.Advance(rule.DefaultWindow)
		w.rounds(cp)
	},
	ended: func(w *world, _ operation.Status) {
		w.wantPurged()
		if got := w.events(); !slices.Equal(got, []string{"backup.succeeded", "delete.succeeded"}) {
			w.t.Errorf("events %v", got)
		}
		refused(w.t, errOf(w.recovers(w.ControlPlane, w.latest.Record.ID)), fault.DatabaseNotFound)
	},
}

// theAdoption is of a database that was made after the metadata to which a test goes back.
var theAdoption = flow{
	name: "adopt", kind: adoptions.Kind,
	prepare: (*world).unknown,
	begin: func(w *world, cp *controlplane.ControlPlane) {
		_, _ = cp.Operator.Adopt(w.ctx, w.adopting("shop"))
	},
	fails: func(w *world) { w.refusing("SetAccess", command.ReasonFailed) },
	ended: func(w *world, end operation.Status) {
		equal(w.t, "logs in", w.logsIn(w.latest), true)
		if end != operation.Succeeded {
			equal(w.t, "databases", w.databases(), 0)
			w.wantFindings(doctor.DatabaseUnknown)
			must(w.Operator.Adopt(w.ctx, w.adopting("shop")))(w.t)
			w.work(w.ControlPlane)
		}
		equal(w.t, "status", w.status(w.latest.Record.ID), database.Active)
		equal(w.t, "in the log", w.logged(w.latest.Record.ID, audit.DatabaseAdopted), 1)
		w.wantFindings(doctor.PasswordDiffers)
	},
}

// flows are those that workers carry out.
var flows = []flow{
	theAdoption, theBackup, theExtension, theRestore, theCloneOfNow, theCloneOfBackup, theCloneOfThen, theCloneElsewhere,
	theDeletion, theRecovery, thePurge, theMove, theClosedMove, theRehearsal,
}

// within are those that a request waits for, and ways of others that differ by what is there before.
var within = []flow{
	{
		name: "create", kind: databases.KindCreate, prepare: func(*world) {},
		begin: func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.Databases.Create(w.ctx, w.caller, keyed("shop"))
		},
		fails: func(w *world) { w.server.AddForeign("shop") },
		ended: func(w *world, end operation.Status) {
			if end == operation.Failed {
				equal(w.t, "databases", w.databases(), 0)
				equal(w.t, "databases on the server", len(w.server.Databases()), 0)
				return
			}
			c := must(w.Databases.Create(w.ctx, w.caller, keyed("shop")))(w.t)
			equal(w.t, "logs in", w.logsIn(c), true)
			equal(w.t, "databases", w.databases(), 1)
			equal(w.t, "logins", len(w.server.Logins()), 3)
		},
	},
	{
		name: "create, on another server", kind: databases.KindCreate,
		prepare: func(w *world) { _, dead := w.another("roomy", 0); dead.SetUnreachable(true) },
		begin: func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.Databases.Create(w.ctx, w.caller, keyed("shop"))
		},
		ended: func(w *world, _ operation.Status) {
			c := must(w.Databases.Create(w.ctx, w.caller, keyed("shop")))(w.t)
			on := w.fleet.Server(c.Record.ServerID)
			equal(w.t, "logs in", on.CanLogIn(customer, c.Record.Name, c.Username, c.Password), true)
			equal(w.t, "databases", w.databases(), 1)
		},
	},
	{
		name: "stop", kind: databases.KindLifecycle, prepare: func(w *world) { w.made("shop") },
		begin: stopped, fails: func(w *world) { w.refusesAccess(1, database.Stop) }, ended: wantStopped,
	},
	{
		name: "stop, with access lost for a while", kind: databases.KindLifecycle,
		prepare: func(w *world) { w.made("shop"); w.refusesAccess(4, database.Stop) }, begin: stopped,
		ended: func(w *world, _ operation.Status) { wantStopped(w, operation.Failed) },
	},
	{
		name: "purge, refused for a while", kind: rule.KindPurge,
		prepare: func(w *world) {
			w.deletable()
			w.deleted(w.source())
			refusals := 3
			w.inEveryCall("Purge", func() (f fakeagent.Fault) {
				if refusals--; refusals >= 0 {
					f.Before = command.Refuse(command.ReasonFailed, "as the test wants it")
				}
				return f
			})
		},
		begin: thePurge.begin, ended: func(w *world, _ operation.Status) { w.wantPurged() },
	},
	{
		name: "purge, ended by an operator", kind: rule.KindPurge,
		prepare: func(w *world) {
			w.deletable()
			w.deleted(w.source())
			w.clock.Advance(rule.DefaultWindow)
			w.rounds(w.ControlPlane)
		},
		begin: func(w *world, cp *controlplane.ControlPlane) {
			w.clock.Advance(time.Minute) // a lease of who died is over
			_, _ = cp.Operator.FailOperation(w.ctx, w.openOnes()[0].ID, anOrder)
		},
		ended: func(w *world, _ operation.Status) {
			if w.recordOf(w.latest.Record.ID) == "" { // nobody had heard of the order
				w.wantPurged()
				return
			}
			w.wantLive(1)
		},
	},
	{
		name: "timeouts", kind: querytimeouts.Kind,
		prepare: func(w *world) { must(w.setsTimeouts(w.made("shop").Record.ID, querytimeout.Standard, "before"))(w.t) },
		begin: func(w *world, cp *controlplane.ControlPlane) {
			_, _ = cp.QueryTimeouts.Set(w.ctx, w.reached(w.only().ID), querytimeout.Short, "one")
		},
		fails: func(w *world) { w.refusing("Configure", command.ReasonFailed) },
		ended: func(w *world, end operation.Status) {
			db := w.only().ID
			if end == operation.Failed {
				refused(w.t, errOf(w.setsTimeouts(db, querytimeout.Short, "one")), fault.AgentError)
				w.server.OnCall(nil)
				w.rounds(w.ControlPlane)
				w.timeoutsAre(db, querytimeout.Standard)
				equal(w.t, "failures in the log", w.logged(db, audit.TimeoutsFailed), 1)
				return
			}
			w.timeoutsAre(db, querytimeout.Short)
			equal(w.t, "status", must(w.setsTimeouts(db, querytimeout.Short, "one"))(w.t).Change.Status, operation.Succeeded)
			equal(w.t, "changes in the log", w.logged(db, audit.TimeoutsChanged), 2)
		},
	},
}

// stopped asks for the only database to be stopped. Whoever is asked may die over it.
func stopped(w *world, cp *controlplane.ControlPlane) {
	_, _ = cp.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Stop)
}

// wantStopped expects that the record says who gets in, and that a stop can be asked for again. A process that died before it had
// noted a refusal tries again, and then nothing is refused.
func wantStopped(w *world, end operation.Status) {
	w.work(w.ControlPlane)
	status := w.only().Status
	equal(w.t, "logs in", w.logsIn(w.latest), status == database.Active)
	if end == operation.Succeeded {
		equal(w.t, "status", status, database.Stopped)
		return
	}
	must(w.Databases.SetLifecycle(w.ctx, w.reached(w.only().ID), database.Stop))(w.t)
}

// cancels has the only open operation canceled.
func (w *world) cancels() (operation.Operation, error) {
	w.t.Helper()
	return w.Operations.Cancel(w.ctx, w.reachedOperation(w.openOnes()[0].ID))
}

// mended has the server do everything again.
func (w *world) mended() {
	w.server.OnCall(nil)
	w.server.SetStorageFull(false)
	w.server.SetNotVerified("")
}

// begun is a world in which the operation was asked for, and nobody works on it.
func (f flow) begun(t *testing.T) (*world, operation.Operation) {
	t.Helper()
	w := newWorld(t)
	f.prepare(w)
	f.begin(w, w.ControlPlane)
	return w, w.operation(w.openOnes()[0].ID)
}

// Killed at any point, the next process brings an operation to its end, whichever that is.
func TestEveryFlowSurvivesEveryCrash(t *testing.T) {
	for _, f := range sample.OneIn(t, 4, append(within, flows...)) {
		for end, prepare := range map[operation.Status]func(w *world){
			operation.Succeeded: f.prepare,
			operation.Failed:    func(w *world) { f.prepare(w); f.fails(w) },
			operation.Canceled: func(w *world) {
				f.prepare(w)
				w.during(f.during, func() { _, _ = w.cancels() }) // or it is canceled already
			},
		} {
			if end == operation.Failed && f.fails == nil || end == operation.Canceled && f.during == "" {
				continue
			}
			t.Run(f.name+"/"+string(end), func(t *testing.T) {
				killed(t, f.kind, prepare, func(w *world, cp *controlplane.ControlPlane) {
					f.begin(w, cp)
					w.work(cp)
				}, func(w *world) {
					w.mended()
					f.ended(w, end)
				})
			})
		}
	}
}

// One that is queued ends at once. Once the intent of what cannot be taken back is committed, none is canceled any more.
func TestCancelingAFlow(t *testing.T) {
	for _, f := range flows {
		if f.kind != rule.KindPurge && f.kind != adoptions.Kind { // which no customer cancels
			t.Run(f.name+", queued", func(t *testing.T) {
				w, o := f.begun(t)
				equal(t, "at once", must(w.cancels())(t).Status, operation.Canceled)
				equal(t, "in the log", w.logged(o.DatabaseID, audit.OperationCanceled), 1)
				f.ended(w, operation.Canceled)
			})
		}
		if f.during != "" {
			t.Run(f.name+", with its server away", func(t *testing.T) {
				w, o := f.begun(t)
				w.server.SetUnreachable(true)
				w.runOnce()
				must(w.cancels())(t)
				w.runOnce()
				equal(t, "not closed", w.operation(o.ID).Status, operation.Running)
				w.server.SetUnreachable(false)
				w.work(w.ControlPlane)
				equal(t, "in the log", w.logged(o.DatabaseID, audit.OperationCanceled), 1)
				f.ended(w, operation.Canceled)
			})
		}
		if f.forward != "" {
			t.Run(f.name+", too late", func(t *testing.T) {
				w, _ := f.begun(t)
				w.failing(f.forward, 0, ports.ErrAgentUnreachable)
				for from := w.server.Calls(f.forward); w.server.Calls(f.forward) == from; w.clock.Advance(2 * operation.Backoff(1)) {
					w.runOnce()
				}
				refused(t, errOf(w.cancels()), fault.DatabaseStateConflict)
				w.work(w.ControlPlane)
				f.ended(w, operation.Succeeded)
			})
		}
	}
}

// The agent knows better: what cannot be closed is done, and is concluded.
func TestAClosingThatComesTooLate(t *testing.T) {
	for _, f := range flows {
		if f.forward == "" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			w, o := f.begun(t)
			w.inCall(f.forward, 0, func() fakeagent.Fault { // of an agent that errs
				return fakeagent.Fault{After: command.Refuse(command.ReasonFailed, "the database is gone")}
			})
			w.work(w.ControlPlane)
			f.ended(w, operation.Succeeded)
			if failure := w.operation(o.ID).Failure(); failure != nil {
				t.Errorf("it has the error %+v", failure)
			}
		})
	}
}

// The agent is gone for a while, loses replies, and comes back: the same operation goes on.
func TestAFlowOutlivesItsServersAbsence(t *testing.T) {
	for _, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			w, o := f.begun(t)
			w.server.SetUnreachable(true)
			w.tryForAnHour()
			equal(t, "status", w.operation(o.ID).Status, operation.Running)
			w.server.SetUnreachable(false)
			w.server.LoseReplies(3)
			w.work(w.ControlPlane)
			f.ended(w, operation.Succeeded)
		})
	}
}

// What the agent says decides over the code. Everything is as it was before, and nothing stands beside it.
func TestWhatAFlowFailsWith(t *testing.T) {
	refuses := func(method string, reason command.Reason) func(w *world) {
		return func(w *world) { w.refusing(method, reason) }
	}
	once := func(method string) func(w *world) {
		return func(w *world) { w.failing(method, 0, command.Refuse(command.ReasonFailed, "as the test wants it")) }
	}
	full := func(w *world) { w.server.SetStorageFull(true) }
	differs := func(w *world) { w.server.FailLoads("row 7 differs") }
	busy := func(w *world) { w.server.StayBusy(restore.MostSwitches) }
	for _, c := range []struct {
		flow
		why     string
		breaks  func(w *world)
		code    fault.Code
		message string // empty: any
	}{
		{theBackup, "no room", full, fault.BackupStorageFull, "the server has no room for the backup"},
		{theBackup, "refused", refuses("Backup", command.ReasonFailed), fault.AgentError,
			"the database server could not make the backup"},
		{theExtension, "failed", func(w *world) { w.server.FailExtensions("a type is in the way") },
			fault.ExtensionPreparationFailed, "a type is in the way"},
		{theExtension, "refused", refuses("ChangeExtension", command.ReasonFailed), fault.ExtensionPreparationFailed,
			"the database server could not change the extension; nothing was changed"},

		{theRestore, "the copy differs", differs, fault.BackupNotVerified, "row 7 differs"},
		{theRestore, "no room", refuses("Load", command.ReasonStorageFull), fault.BackupStorageFull,
			"the database server has no room for a copy of the database"},
		{theRestore, "refused", refuses("Load", command.ReasonFailed), fault.AgentError,
			"the database server could not restore the backup; the database is as it was"},
		{theRestore, "the switch is refused", refuses("Switch", command.ReasonFailed), fault.AgentError,
			"the database server refused to put the copy in the place of the database, which is as it was"},
		{theRestore, "the copy gave way", refuses("Switch", command.ReasonNotFound), fault.BackupStorageFull,
			"the copy was ready and had to give way to others who needed room; the database is as it was: start another restore," +
				" and advance it as soon as it is ready"},

		{theCloneOfNow, "the name is taken", refuses("EnsureDatabase", command.ReasonNameTaken), fault.ValidationError,
			"name: is taken"},
		{theCloneOfNow, "it is not made", refuses("EnsureDatabase", command.ReasonFailed), fault.AgentError,
			"the database server could not make the clone; nothing is left of it"},
		{theCloneOfNow, "no room for the dump", full, fault.BackupStorageFull, "the server has no room for the backup"},
		{theCloneOfNow, "no room at all for the dump", refuses("Backup", command.ReasonStorageFull), fault.BackupStorageFull,
			"the database server has no room for a dump of the database"},
		{theCloneOfNow, "no dump", refuses("Backup", command.ReasonFailed), fault.AgentError,
			"the database server could not dump the database"},
		{theCloneOfNow, "the copy differs", differs, fault.BackupNotVerified, "row 7 differs"},
		{theCloneOfNow, "no room", refuses("Load", command.ReasonStorageFull), fault.BackupStorageFull,
			"the database server has no room for the clone"},
		{theCloneOfNow, "refused", refuses("Load", command.ReasonFailed), fault.AgentError,
			"the database server could not fill the clone; nothing is left of it"},
		{theCloneOfNow, "too large", func(w *world) { w.quota(1000) }, fault.PlanLimit, ""},
		{theCloneOfNow, "the switch is refused", refuses("Switch", command.ReasonFailed), fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"},
		{theCloneOfNow, "it is never alone", busy, fault.AgentError,
			"the database server could not put the copy in its place; nothing is left of the clone"},

		{theCloneOfThen, "the archive lost it", func(w *world) { w.server.LoseSegments(w.then.Add(-time.Second), w.clock.Now()) },
			fault.PointNotRecoverable, ""},
		{theCloneOfThen, "no archive any more", func(w *world) { w.server.SetArchiving(false) }, fault.PointNotRecoverable,
			"the server keeps no archive"},
		{theCloneOfThen, "no dump", refuses("Backup", command.ReasonFailed), fault.AgentError,
			"the database server could not dump the database"},

		{theDeletion, "it is not closed", once("SetAccess"), fault.AgentError, "the database server could not close the database"},
		{theDeletion, "not verified", theDeletion.fails, fault.BackupNotVerified, "row 7 differs"},
		{theDeletion, "no room", full, fault.BackupStorageFull, ""},
		{theDeletion, "no backup", once("Backup"), fault.AgentError, "the database server could not make the deletion backup"},
		{theDeletion, "not isolated", once("Isolate"), fault.AgentError, ""},
		{theDeletion, "never alone", busy, fault.AgentError,
			"the database server could not take the database out of service: sessions of the database cannot be ended"},
		{theRecovery, "refused", once("Rejoin"), fault.AgentError,
			"the database server could not put the database back into service; it is deleted as before"},
	} {
		t.Run(c.name+", "+c.why, func(t *testing.T) {
			w, o := c.begun(t)
			c.breaks(w)
			w.work(w.ControlPlane)
			f := w.operation(o.ID).Failure()
			if f == nil || f.Code != c.code || c.message != "" && f.Message != c.message {
				t.Errorf("%+v, want %s: %s", f, c.code, c.message)
			}
			w.mended()
			c.ended(w, operation.Failed)
		})
	}
}
