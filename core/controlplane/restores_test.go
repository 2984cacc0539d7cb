package controlplane_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/stage"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// newRestoreRoleWorld is a world whose one database has an additional role and a backup that is verified.
func newRestoreRoleWorld(t *testing.T) (*roleWorld, id.RoleID) {
	t.Helper()
	w := newRoleWorld(t)
	r := w.role("report")
	must(w.Backups.Start(w.ctx, w.here()))(t)
	w.work(w.ControlPlane)
	return w, r.ID
}

// A key belongs to one restore of the account, whatever became of it.
func TestTheKeyOfAManagedRestore(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	db, file := w.only().ID, w.backedUp()
	o := w.reserved()
	equal(t, "again", w.reserved().ID, o.ID)
	other := w.made("other").Record.ID
	ask := func(db id.DatabaseID, file backup.Filename) error {
		return errOf(w.Restores.Reserve(w.ctx, w.reached(db), restore.Request{Filename: file, Key: "once"}))
	}
	refused(t, ask(db, "20260101_000000.sql.gz"), fault.ManagedRoleConflict)
	refused(t, ask(other, file), fault.ManagedRoleConflict)
	refused(t, ask(other, "latest"), fault.InvalidBackupFilename)
	must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
	refused(t, ask(db, file), fault.RestoreOperationTerminal)
	refused(t, ask(other, file), fault.ManagedRoleConflict)
	equal(t, "switches", w.server.Calls("Switch")+w.server.Calls("Load"), 0)
}

// Only a full-account key of the owner reserves and advances, also where another program than the API asks.
func TestWhoRestores(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	db, file := w.only().ID, w.backedUp()
	o := w.reserved()
	_, text, err := w.Operator.CreateKey(w.ctx, keys.NewKey{
		AccountID: w.account.ID, Label: "one", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
	})
	ok(t, err)
	caller := w.admit(text)
	reached := must(w.Access.Reach(w.ctx, caller, db, account.See))(t)
	refused(t, errOf(w.Restores.Reserve(w.ctx, reached, restore.Request{Filename: file, Key: "k"})), fault.KeyScopeDenied)
	refused(t, errOf(w.Restores.Advance(w.ctx, reached, o)), fault.KeyScopeDenied)
	other := w.reached(w.made("other").Record.ID)
	refused(t, errOf(w.Restores.Advance(w.ctx, other, o)), fault.OperationNotFound)
	refusedInside(t, errOf(w.Restores.Start(w.ctx, w.reached(db), file, restore.Consents{}))) // not through its gate
}

// A key that is revoked while its advance waits for its turn does nothing more.
func TestAnAdvanceOfARevokedKey(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	reached := w.reached(w.only().ID)
	ok(t, w.Operator.RevokeKey(w.ctx, w.caller.Key.ID))
	refused(t, errOf(w.Restores.Advance(w.ctx, reached, o)), fault.OperationNotFound)
	equal(t, "loads", w.server.Calls("Load"), 0)
}

// Until it has begun, a restore blocks nothing but other operations. Once it runs, logins change no more, until it has ended.
func TestLoginsBesideARestore(t *testing.T) {
	w, reports := newRestoreRoleWorld(t)
	o := w.reserved()
	equal(t, "rotated", must(w.change(reports, role.Rotation, "one"))(t).Status, role.Completed)
	w.role("more")
	refused(t, errOf(w.Backups.Start(w.ctx, w.here())), fault.DatabaseStateConflict)

	w.until(o.ID, restore.Loading)
	for name, do := range map[string]func() error{
		"a rotation":   func() error { return errOf(w.change(reports, role.Rotation, "two")) },
		"a revocation": func() error { return errOf(w.change(reports, role.Revocation, "three")) },
		"a new role":   func() error { return errOf(w.Roles.Create(w.ctx, w.here(), wanted("third"))) },
		"a deletion":   func() error { return errOf(w.Roles.Delete(w.ctx, w.here(), reports)) },
	} {
		if err := do(); !fault.Has(err, fault.ManagedRoleConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, errOf(w.setsTimeouts(w.db, querytimeout.Short, "one")), fault.DatabaseStateConflict)
	refused(t, errOf(w.Databases.SetLifecycle(w.ctx, w.here(), database.Stop)), fault.DatabaseStateConflict)
	w.until(o.ID, stage.Succeeded)
	equal(t, "rotated", must(w.change(reports, role.Rotation, "two"))(t).Status, role.Completed)
}

// Credentials expire beside a restore that waits for its callers, and after one that runs.
func TestCredentialsExpireBesideARestore(t *testing.T) {
	w := newRoleWorld(t)
	w.passwordsEnd(30 * time.Minute)
	first := w.role("first")
	must(w.Backups.Start(w.ctx, w.here()))(t)
	w.work(w.ControlPlane)
	o := w.reserved()
	w.clock.Advance(30 * time.Minute)
	w.batch(w.ControlPlane)
	w.is(first.ID, role.Expired)

	second := w.role("second")
	w.until(o.ID, restore.Loading)
	w.clock.Advance(30 * time.Minute)
	ok(t, w.Rounds.Once(w.ctx))
	w.is(second.ID, role.Ready)
	w.until(o.ID, stage.Succeeded)
	w.keep()
	w.is(second.ID, role.Expired)
}

// What is being done to logins keeps a restore from being reserved, and one that is reserved from beginning.
func TestARestoreBesideChangesOfLogins(t *testing.T) {
	t.Run("a rotation", func(t *testing.T) {
		w, reports := newRestoreRoleWorld(t)
		o := w.reserved()
		w.losing("ChangeLogin", 0)
		equal(t, "status", must(w.change(reports, role.Rotation, "one"))(t).Status, role.Pending)
		refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.ManagedRoleConflict)
		equal(t, "status", w.operation(o.ID).Status, operation.Queued)
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
		refused(t, errOf(w.reserving("two")), fault.ManagedRoleConflict)
		w.keep()
		w.wantFree()
	})
	t.Run("a new role", func(t *testing.T) {
		w, _ := newRestoreRoleWorld(t)
		o := w.reserved()
		w.losing("AdmitRole", 0)
		refused(t, errOf(w.Roles.Create(w.ctx, w.here(), wanted("more"))), fault.AgentError)
		refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.ManagedRoleConflict)
		must(w.Operations.Cancel(w.ctx, w.reachedOperation(o.ID)))(t)
		refused(t, errOf(w.reserving("two")), fault.ManagedRoleConflict)
		w.role("more")
		w.wantFree()
	})
}

// A change that began in the moment in which the restore did is waited for; the callers are not kept.
func TestARestoreWaitsForAChangeThatCameFirst(t *testing.T) {
	w, reports := newRestoreRoleWorld(t)
	o := w.reserved()
	w.losing("ChangeLogin", 0)
	equal(t, "status", must(w.change(reports, role.Rotation, "one"))(t).Status, role.Pending)
	now := must(w.Work.Advance(w.ctx, o.ID, time.Minute))(t) // as where the change came after the advance had looked
	equal(t, "stage", now.Stage, operation.StageQueued)
	equal(t, "loads", w.server.Calls("Load"), 0)
	w.keep()
	w.until(o.ID, stage.Succeeded)
}

// A backup that a restore uses is deleted by nobody, and its retention waits until that has ended.
func TestTheBackupOfARestoreStays(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	r := w.reached(w.only().ID)
	b := w.backups(r)[0]
	w.backUp(r)
	o := w.reserved()
	refused(t, w.Backups.Delete(w.ctx, r, b.Filename), fault.BackupConflict)
	w.until(o.ID, restore.Loading)
	w.clock.Advance(b.ExpiresAt.Sub(w.clock.Now()))
	w.until(o.ID, restore.Ready) // before a worker could find it idle
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "erased while in use", w.server.Calls("DeleteBackup"), 0)
	w.until(o.ID, stage.Succeeded)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "erased", w.server.Calls("DeleteBackup"), 1)
}

// The saved profile is in force in what is now the database, under another OID and a new generation.
func TestSettingsAreBoundToWhatIsRestored(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	db := w.only().ID
	before := must(w.setsTimeouts(db, querytimeout.Short, "one"))(t)
	w.until(w.reserved().ID, stage.Succeeded)
	w.timeoutsAre(db, querytimeout.Short)
	after := must(w.QueryTimeouts.Get(w.ctx, w.reached(db)))(t)
	equal(t, "generation", after.SettingsGeneration, before.SettingsGeneration+1)
	equal(t, "the same database", after.InForce.DatabaseOID == before.InForce.DatabaseOID, false)
	equal(t, "generation at the server", after.InForce.Generation, after.SettingsGeneration)
}

// The size is that of what is restored, with what follows from it for the quota.
func TestTheSizeOfWhatIsRestored(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	w.quota(aQuota)
	w.grown("shop", aQuota*11/10)
	w.stands("above the quota", w.latest, database.StorageFull)
	w.until(w.reserved().ID, stage.Succeeded)
	equal(t, "it has its size", w.only().SizeBytes < aQuota, true)
	w.later(2 * time.Second)
	w.stands("restored", w.latest, database.StorageOK)
}

// A size that was asked for before the switch says nothing of what is restored, however late it comes.
func TestASizeOfBeforeTheSwitch(t *testing.T) {
	for n, what := range []string{"asked for", "asked for once more"} {
		t.Run(what, func(t *testing.T) {
			w := newRestoreWorld(t, database.Managed)
			w.quota(aQuota)
			w.later(2 * time.Second)
			o := w.reserved()
			w.until(o.ID, restore.Ready)
			w.server.SetSize("shop", 2*aQuota)
			w.inCall("StorageUse", n, func() fakeagent.Fault {
				return fakeagent.Fault{Then: func() { w.until(o.ID, stage.Succeeded) }}
			})
			w.later(2 * time.Second)
			w.wantEnd(operation.Succeeded)
			w.stands("restored", w.latest, database.StorageOK)
			w.later(2 * time.Second)
			equal(t, "it has its size", w.only().SizeBytes < aQuota, true)
			w.grown("shop", 2*aQuota)
			w.stands("grown", w.latest, database.StorageClosed)
		})
	}
	t.Run("read", func(t *testing.T) {
		w := newRestoreWorld(t, database.Managed)
		o := w.reserved()
		w.until(o.ID, restore.Ready)
		w.server.SetSize("shop", 2*aQuota)
		w.clock.Advance(2 * database.SizeMaxAge)
		w.inCall("DatabaseSize", 0, func() fakeagent.Fault {
			return fakeagent.Fault{Then: func() { w.until(o.ID, stage.Succeeded) }}
		})
		must(w.Databases.Get(w.ctx, w.reached(w.only().ID)))(t)
		w.wantEnd(operation.Succeeded)
		equal(t, "it has its size", w.only().SizeBytes < aQuota, true)
	})
}

// Settings that the server refuses for good do not keep a restore open: a round sends them again.
func TestSettingsThatAreRefusedAfterASwitch(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.refusing("Configure", command.ReasonFailed)
	w.until(o.ID, stage.Succeeded)
	equal(t, "applied", w.only().SettingsApplied == w.only().SettingsGeneration, false)
	w.server.OnCall(nil)
	w.later(time.Minute)
	w.wantEnd(operation.Succeeded)
}

// The callers are told that an agent of another protocol is to be updated, and others find their restore waiting.
func TestARestoreNeedsAnAgentOfItsProtocol(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.server.SetProtocol(-1)
	refused(t, errOf(w.advance(w.ControlPlane, o.ID)), fault.AgentRouteUnavailable)
	w.server.SetProtocol(0)
	w.until(o.ID, stage.Succeeded)

	w = newRestoreWorld(t, database.SingleLogin)
	w.restoring()
	w.server.SetProtocol(-1)
	w.tryForAnHour()
	equal(t, "status", w.newest().Status, operation.Running)
	w.server.SetProtocol(0)
	w.work(w.ControlPlane)
	w.wantEnd(operation.Succeeded)
}

// Two who advance at the same time do one step; the other one reads.
func TestTwoAdvancesAtOnce(t *testing.T) {
	w := newRestoreWorld(t, database.Managed)
	o := w.reserved()
	w.inCall("Load", 0, func() (f fakeagent.Fault) {
		other := must(w.advance(w.process(quick()), o.ID))(t)
		equal(t, "status", other.Status, operation.Running)
		return f
	})
	must(w.advance(w.ControlPlane, o.ID))(t)
	equal(t, "loads", w.server.Calls("Load"), 1)
	w.until(o.ID, stage.Succeeded)
}

// A manifest that is not the one of the record is never restored from.
func TestAnotherManifestIsNotRestored(t *testing.T) {
	w := newRestoreWorld(t, database.SingleLogin)
	w.server.Load("shop", "CREATE TABLE more (n int);\n")
	w.restoring()
	if !w.server.SwapManifest(w.only().ID, w.backedUp()) {
		t.Fatal("there is no file")
	}
	w.work(w.ControlPlane)
	w.wantEnd(operation.Failed)
	wantFailure(t, w.newest(), fault.BackupNotVerified, "the manifest is not the one that was made with the backup")
}
