package store

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/ports"
)

// Databases is the suite of ports.Databases; what a key sees is that of Visibility.
func Databases(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a record comes back as it was stored", recordComesBack},
		{"only what can change is saved", identityStays},
		{"a name is unique on its server", nameIsUnique},
		{"the quota counts every status of a database that is there", quotaCounts},
		{"a removed record leaves the activity log", removeLeavesAudit},
		{"a removed record frees name and key", removeFrees},
		{"a removed record takes its roles along", removeTakesRoles},
		{"scheduled backups become due", backupsBecomeDue},
		{"readings of backups become due", readingsBecomeDue},
		{"allowlists become due", func(w *world) { behindBecomesDue(w, ports.DueAllowlist, behindAllowlist) }},
		{"a pulse changes with what pages show", pulsesBeat},
		{"databases are found by where their way back leads", waysBackAreFound},
		{"settings become due", func(w *world) { behindBecomesDue(w, ports.DueSettings, behindSettings) }},
	})
}

func lock(w *world, db id.DatabaseID) database.Record {
	w.Helper()
	return readLocked(w, ports.Tx.Databases, ports.Databases.Lock, db)
}

func recordComesBack(w *world) {
	r := w.addDatabase("shop")
	w.equal("as added", lock(w, r.ID), r)
	sized, next := minutes(5), minutes(60)
	r.DisplayName, r.Environment, r.Schedule, r.Status = "Läden 🛒", "", database.Daily, database.Stopped
	r.ConnectionCap, r.SizeBytes, r.SizedAt, r.NextBackupAt, r.NextReadingAt, r.ScheduleSince = 0, 1<<40, &sized, &next, next, &sized
	r.AccessGeneration, r.AllowlistGeneration, r.AllowlistApplied = 3, 5, 4
	r.RoleGeneration, r.RoleOrdinal, r.RolesBarred = 1<<40, 7, true
	r.PostgresVersion, r.WayBack = 18, 17
	r.Settings = database.Settings{
		SettingsGeneration: 1 << 40, SettingsApplied: 6, TimeoutProfile: querytimeout.Short,
		TimeoutEffective: querytimeout.Standard, TimeoutOperation: newID[id.OperationID](), StorageStatus: database.StorageClosed,
		StorageCeiling: 1 << 50,
	}
	for _, status := range database.OverlayStatuses[1:] {
		r.Overlay = database.Overlay{OverlayID: newID[id.OperationID](), OverlayStatus: status, OverlayGeneration: 1 << 40}
		w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
		w.equal("with an overlay that is "+string(status), lock(w, r.ID), r)
	}
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
	w.equal("as saved", lock(w, r.ID), r)
	for _, status := range database.Statuses {
		r.Status = status
		w.update(writing(ports.Tx.Databases, ports.Databases.Save, r))
		w.equal("in status "+string(status), lock(w, r.ID), r)
		w.equal("read in status "+string(status), read(w, ports.Tx.Databases, ports.Databases.Get, r.ID), r)
	}
}

func identityStays(w *world) {
	r := w.addDatabase("shop")
	_, theirs := w.addAccount("bob@example.com")
	changed := r
	changed.AccountID, changed.Name, changed.RoleModel = theirs.ID, "other", database.SingleLogin
	changed.CreatedAt, changed.Host, changed.Port = minutes(9), "elsewhere", 1
	w.update(writing(ports.Tx.Databases, ports.Databases.Save, changed))
	w.equal("what cannot change", lock(w, r.ID), r)
	w.unknown("saving what does not exist", writing(ports.Tx.Databases, ports.Databases.Save, w.record("ghost")))
}

func waysBackAreFound(w *world) {
	leads := func(back int, status database.Status) func(*database.Record) {
		return func(r *database.Record) { r.PostgresVersion, r.WayBack, r.Status = 18, back, status }
	}
	var want []database.Record
	for i, status := range database.Statuses {
		r := w.addDatabase(numbered(i), leads(16, status))
		if !status.Gone() {
			want = append(want, r)
		}
	}
	other := w.addDatabase("other", leads(17, database.Active))
	w.addDatabase("none", leads(0, database.Active))
	slices.SortFunc(want, func(a, b database.Record) int { return strings.Compare(string(a.ID), string(b.ID)) })
	found := func(version, limit int) []database.Record {
		return read2(w, ports.Tx.Databases, ports.Databases.WaysBack, version, limit)
	}
	w.equal("to 16", found(16, 100), want)
	w.equal("the first two to 16", found(16, 2), want[:2])
	w.equal("to 17", found(17, 100), []database.Record{other})
	w.equal("to none", len(found(0, 100))+len(found(18, 100)), 0)
}

func nameIsUnique(w *world) {
	w.addDatabase("shop")
	w.refused("a taken name", database.ErrNameTaken(), writing(ports.Tx.Databases, ports.Databases.Add, w.record("shop")))
	w.addDatabase("shop", nameServer(w.addServer("second", 10).ID))
	lost := w.record("lost")
	lost.ServerID = newID[id.ServerID]()
	w.unknown("a database on no server", writing(ports.Tx.Databases, ports.Databases.Add, lost))
	w.equal("winners of a race for a name", w.race(8, database.ErrNameTaken(), func(int) transaction {
		return writing(ports.Tx.Databases, ports.Databases.Add, w.record("raced"))
	}), 1)
}

func quotaCounts(w *world) {
	for i, status := range database.Statuses {
		w.addDatabase(numbered(i), func(r *database.Record) { r.Status = status })
	}
	_, theirs := w.addAccount("bob@example.com")
	count := func(a account.Account) int { return read(w, ports.Tx.Databases, ports.Databases.Count, a.ID) }
	w.equal("databases of the account", count(w.account), len(database.Active.Values()))
	w.equal("databases of another account", count(theirs), 0)
}

func removeLeavesAudit(w *world) {
	r := w.addDatabase("shop", func(r *database.Record) { r.Status = database.Creating })
	work := w.addWork(r.ID, func(o *operation.Operation) { o.Kind, o.Input = "create", nil })
	entry := w.entry(r.ID, 0)
	w.update(inOrder(writing(ports.Tx.Audit, ports.Audit.Add, entry), writing(ports.Tx.Databases, ports.Databases.Remove, r.ID)))
	w.missing("the removed database", reach(w, r.ID))
	log := read2(w, ports.Tx.Audit, ports.Audit.List, r.ID, ports.Page{})
	w.equal("the activity log after the removal", log, []audit.Entry{entry})
	w.view(reading(ports.Tx.Operations, ports.Operations.Get, work.ID))
	w.unknown("removing it again", writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
}

func removeFrees(w *world) {
	r := w.addDatabase("shop")
	request := w.request("k-1")
	request.ResourceID = string(r.ID)
	key := w.addKey(account.SelectedDatabases, w.account, r.ID)
	w.wantClaim("a new key", request, request, true)
	w.update(inOrder(writing(ports.Tx.Logins, ports.Logins.Add, ownerOf(r.ID)),
		writing2(ports.Tx.Switches, ports.Switches.Enroll, r.ID, "clone")))
	w.addEntry(r.ID, "10.0.0.0/8", 0)
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	again := w.addDatabase("shop")
	w.wantClaim("the freed key", request, request, true)
	w.missing("a login of the removed database", reading2(ports.Tx.Logins, ports.Logins.Get, r.ID, database.OwnerLogin))
	viewer := database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: key.ID, Scope: key.Scope}
	w.wantSeen("a key that was bound to the removed database", viewer, []database.Record{again}, seen{})
}

func removeTakesRoles(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	kept := w.addRole(other.ID, 1)
	w.update(addingChange(changeOfRole(kept, role.Revocation)))
	gone, removed := w.addRole(r.ID, 1), w.addRole(r.ID, 2, func(o *role.Role) { *o = in(role.Removed, *o) })
	changes := []role.Change{
		changeOf(r.ID), changeOfRole(gone, role.Revocation).Ended(role.Completed, epoch),
		changeOfRole(removed, role.Removal).Ended(role.Completed, epoch),
	}
	for _, c := range changes {
		w.update(addingChange(c))
	}
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.update(writing(ports.Tx.Databases, ports.Databases.Add, r))
	w.equal("roles that are left", len(w.listedRoles(r.ID)), 0)
	for _, c := range changes {
		w.missing("a change of the removed database", reading2(ports.Tx.RoleChanges, ports.RoleChanges.Get, r.ID, c.ID))
	}
	w.addRole(r.ID, 1) // whose ordinal, username and key are free again
	w.update(addingChange(changes[0]))
	w.equal("another database's role", w.listedRoles(other.ID), []role.Role{kept})
	w.view(reading(ports.Tx.RoleChanges, ports.RoleChanges.Pending, other.ID))
}

func due(w *world, what ports.DueWork, now time.Time, limit int) []id.DatabaseID {
	w.Helper()
	ids := []id.DatabaseID{}
	for _, r := range found(w.view, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Databases().Due(ctx, what, now, limit)
	}) {
		ids = append(ids, r.ID)
		w.equal("the host of a due database", r.Host, w.server.PublicHost)
	}
	return ids
}

func backupsBecomeDue(w *world) {
	scheduled := func(name string, status database.Status, at time.Time) database.Record {
		return w.addDatabase(name, func(r *database.Record) {
			r.Schedule, r.Status, r.NextBackupAt = database.Daily, status, &at
		})
	}
	second, first := scheduled("second", database.Stopped, minutes(2)), scheduled("first", database.Active, minutes(1))
	later := scheduled("later", database.Active, minutes(30))
	scheduled("creating", database.Creating, minutes(1))
	scheduled("deleting", database.Deleting, minutes(1))
	scheduled("error", database.Error, minutes(1))
	w.addDatabase("unscheduled")
	busy := scheduled("busy", database.Active, minutes(1))
	work := w.addWork(busy.ID)

	w.equal("due before the first", due(w, ports.DueBackup, epoch, 10), []id.DatabaseID{})
	w.equal("due, longest first", due(w, ports.DueBackup, minutes(2), 10), []id.DatabaseID{first.ID, second.ID})
	w.equal("due, at most one", due(w, ports.DueBackup, minutes(2), 1), []id.DatabaseID{first.ID})
	w.equal("due at the last moment", due(w, ports.DueBackup, minutes(30), 10), []id.DatabaseID{first.ID, second.ID, later.ID})

	work = ended(work, operation.Canceled)
	work.CancelRequested = true
	w.update(writing(ports.Tx.Operations, ports.Operations.RequestCancel, work))
	w.equal("due after the open operation ended", len(due(w, ports.DueBackup, minutes(1), 10)), 2)
}

func readingsBecomeDue(w *world) {
	var want []id.DatabaseID
	for i, status := range database.Statuses {
		r := w.addDatabase(numbered(i), func(r *database.Record) { r.Status, r.NextReadingAt = status, minutes(20-i) })
		if status != database.Creating && status != database.Purging {
			want = append([]id.DatabaseID{r.ID}, want...)
		}
	}
	w.equal("due, longest first", due(w, ports.DueReading, minutes(20), 10), want)
	w.equal("due, at most one", due(w, ports.DueReading, minutes(20), 1), want[:1])
	w.equal("due before any", due(w, ports.DueReading, minutes(5), 10), []id.DatabaseID{})
}

func behindAllowlist(r *database.Record, applied int64) {
	r.AllowlistGeneration, r.AllowlistApplied = 3, applied
}

func behindSettings(r *database.Record, applied int64) {
	r.SettingsGeneration, r.SettingsApplied = 3, applied
}

// behindBecomesDue looks for the databases of which a server has not got the third generation of something.
func behindBecomesDue(w *world, what ports.DueWork, set func(r *database.Record, applied int64)) {
	behind := func(name string, status database.Status, applied int64) database.Record {
		return w.addDatabase(name, func(r *database.Record) { r.Status = status; set(r, applied) })
	}
	a, b := behind("a-1", database.Active, 2), behind("b-1", database.Stopped, 0)
	behind("applied", database.Active, 3)
	behind("creating", database.Creating, 0)
	behind("deleting", database.Deleting, 0)
	lost := behind("error", database.Error, 0)
	want := []id.DatabaseID{a.ID, b.ID}
	slices.Sort(want)
	w.equal("what is due", due(w, what, epoch, 10), want)
	w.equal("at most one", due(w, what, epoch, 1), want[:1])
	w.suspend(w.account)
	if what == ports.DueSettings {
		want = append(want, lost.ID)
		slices.Sort(want)
	}
	w.equal("what is due of a suspended account", due(w, what, epoch, 10), want)
}
