package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// newReadingWorld is a world with the database "shop" and a verified backup of it, and a second process.
func newReadingWorld(t *testing.T) (*world, access.Reached, *spy) {
	t.Helper()
	w, log := newWorld(t), &spy{}
	w.ports.Journal = log
	w.ControlPlane = w.process(quick())
	r, _ := w.started()
	w.work(w.ControlPlane)
	return w, r, log
}

// readsOne does the rounds of processes until the agent has been asked to read a backup, for as long as that may take.
func (w *world) readsOne(processes ...*controlplane.ControlPlane) {
	w.t.Helper()
	for before, end := w.server.Calls("RereadBackup"), w.clock.Now().Add(15*24*time.Hour); w.clock.Now().Before(end); {
		w.clock.Advance(time.Hour)
		for _, cp := range append(processes, w.ControlPlane) {
			ok(w.t, cp.Rounds.Once(w.ctx))
		}
		if w.server.Calls("RereadBackup") > before {
			return
		}
	}
	w.t.Fatal("no backup was read")
}

func (w *world) rots(db id.DatabaseID, name backup.Filename) {
	w.t.Helper()
	equal(w.t, "there is a file", w.server.Rot(db, name), true)
}

// A backup that is whole is read once in its retention, and nobody is told.
func TestABackupIsReadAgain(t *testing.T) {
	w, r, log := newReadingWorld(t)
	told, events := log.said(r.Record().ID), w.events()
	w.readsOne(w.process(quick()))
	b := w.backups(r)[0]
	if b.LastReadAt == nil || b.VerifiedAt == nil || b.DamagedAt != nil || w.server.Calls("RereadBackup") != 1 {
		t.Errorf("%+v after %d readings", b, w.server.Calls("RereadBackup"))
	}
	drilled := func(what string) bool { return what == "drill.proven" }
	said := slices.DeleteFunc(log.said(r.Record().ID), drilled)
	equal(t, "told", slices.Equal(said, told) && slices.Equal(w.events(), events), true)
}

// Whoever has backups is told of the one that is damaged, which is no longer verified, and a new one is made: once, however many
// processes find it, and also where there is no schedule.
func TestADamagedBackupIsReplaced(t *testing.T) {
	w, r, log := newReadingWorld(t)
	db, made := r.Record().ID, w.backups(r)[0]
	w.rots(db, made.Filename)
	w.readsOne(w.process(quick()), w.process(quick()))
	equal(t, "counted against the quota", must(ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) (int64, error) {
		return tx.Storage().BackupBytes(ctx, db)
	}))(t), 0)
	for range 3 {
		ok(t, w.Rounds.Once(w.ctx))
		w.runAll()
	}
	list := w.backups(r)
	if len(list) != 2 || list[0].Trigger != backup.Scheduled || list[0].VerifiedAt == nil {
		t.Fatalf("backups: %+v", list)
	}
	if b := list[1]; b.Filename != made.Filename || b.VerifiedAt != nil || b.DamagedAt == nil || b.LastReadAt == nil {
		t.Errorf("the damaged one: %+v", b)
	}
	w.wantFindings(doctor.FileDamaged)
	next := w.reached(db).Record().NextBackupAt
	equal(t, "another one is to come", next == nil, true)
	equal(t, "entries", w.logged(db, audit.BackupDamaged), 1)
	equal(t, "told", count(log.said(db), "backup.damaged"), 1)
	told := slices.IndexFunc(w.store.Events(), func(e ports.OutboxEvent) bool { return e.Name == event.BackupDamaged })
	equal(t, "events", count(w.events(), "backup.damaged"), 1)
	var p event.Payload
	ok(t, json.Unmarshal(w.store.Events()[told].Payload, &p))
	if p.ID == made.OperationID || p.Data.OperationID != made.OperationID || p.Data.DatabaseName != "shop" ||
		p.Data.Error == nil || p.Data.Error.Code != fault.BackupNotVerified {
		t.Errorf("%+v", p)
	}
}

// A store that was the wrong one gives back what was lost: the backup is verified as before.
func TestADamagedBackupThatIsWholeAgain(t *testing.T) {
	w, r, _ := newReadingWorld(t)
	db, made := r.Record().ID, w.backups(r)[0]
	w.rots(db, made.Filename)
	w.readsOne()
	w.rots(db, made.Filename)
	w.readsOne()
	b := w.backups(r)[0]
	if b.DamagedAt != nil || b.VerifiedAt == nil || !b.VerifiedAt.Equal(*made.VerifiedAt) {
		t.Errorf("%+v", b)
	}
	equal(t, "entries", w.logged(db, audit.BackupMended), 1)
}

// A store that is away, and an agent that cannot say, are no damage: the backup is read later, and no other waits for it.
func TestAReadingThatFindsNothingOut(t *testing.T) {
	for name, c := range map[string]struct{ begin, end func(w *world) }{
		"away": {func(w *world) { w.server.SetStorage("the bucket is gone") }, func(w *world) { w.server.SetStorage("") }},
		"old": {
			func(w *world) { w.refusing("RereadBackup", command.ReasonNoRoute) }, func(w *world) { w.server.OnCall(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, log := newReadingWorld(t)
			w.clock.Advance(13 * 24 * time.Hour)
			c.begin(w)
			for range 3 {
				ok(t, w.Rounds.Once(w.ctx))
			}
			b := w.backups(r)[0]
			if b.LastReadAt != nil || b.VerifiedAt == nil || w.server.Calls("RereadBackup") != 1 {
				t.Errorf("%+v after %d readings", b, w.server.Calls("RereadBackup"))
			}
			equal(t, "told", count(log.said(r.Record().ID), "backup.not_read"), 1)
			c.end(w)
			w.readsOne()
			equal(t, "read", w.backups(r)[0].LastReadAt != nil, true)
		})
	}
}

// A reading goes on over many rounds, and is asked for by all processes; what comes of it is stored once. Meanwhile no other
// backup of the server is asked for twice in a round. An agent that does not answer is asked again.
func TestAReadingThatTakesLong(t *testing.T) {
	w, r, _ := newReadingWorld(t)
	other := w.reached(w.made("other").Record.ID)
	w.backUp(other)
	w.server.HoldReadings(true)
	w.clock.Advance(13 * 24 * time.Hour)
	second := w.process(quick())
	for range 3 {
		ok(t, w.Rounds.Once(w.ctx))
		ok(t, second.Rounds.Once(w.ctx))
	}
	equal(t, "asked", w.server.Calls("RereadBackup"), 6)
	w.failing("RereadBackup", 0, errors.New("the line is cut"))
	ok(t, w.Rounds.Once(w.ctx))
	w.server.OnCall(nil)
	w.server.HoldReadings(false)
	read := func() (n int) {
		for _, r := range []access.Reached{r, other} {
			if w.backups(r)[0].LastReadAt != nil {
				n++
			}
		}
		return n
	}
	equal(t, "read meanwhile", read(), 0)
	ok(t, w.Rounds.Once(w.ctx))
	ok(t, second.Rounds.Once(w.ctx))
	equal(t, "read", read(), 2)
	equal(t, "asked in all", w.server.Calls("RereadBackup"), 9)
}

// What is deleted while it is read, or made anew under its name, was not damaged.
func TestABackupThatGoesWhileItIsRead(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, r access.Reached, b backup.Backup){
		"deleted": func(w *world, r access.Reached, b backup.Backup) { ok(w.t, w.Backups.Delete(w.ctx, r, b.Filename)) },
		"being deleted": func(w *world, r access.Reached, b backup.Backup) {
			w.failing("DeleteBackup", 0, ports.ErrAgentUnreachable)
			refused(w.t, w.Backups.Delete(w.ctx, r, b.Filename), fault.AgentError)
		},
		"made anew": func(w *world, r access.Reached, b backup.Backup) {
			ok(w.t, w.Backups.Delete(w.ctx, r, b.Filename))
			b.OperationID = id.OperationID("0189abcd-ef01-4234-8567-89abcdef0123")
			ok(w.t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Backups().Add(ctx, b) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, _ := newReadingWorld(t)
			b := w.backups(r)[0]
			w.rots(r.Record().ID, b.Filename)
			w.clock.Advance(13 * 24 * time.Hour)
			w.inCall("RereadBackup", 0, func() fakeagent.Fault {
				return fakeagent.Fault{Then: func() { meanwhile(w, r, b) }}
			})
			ok(t, w.Rounds.Once(w.ctx))
			equal(t, "asked", w.server.Calls("RereadBackup"), 1)
			equal(t, "entries", w.logged(r.Record().ID, audit.BackupDamaged), 0)
			equal(t, "events", count(w.events(), "backup.damaged"), 0)
			for _, left := range w.backups(r) {
				equal(t, "damaged", left.DamagedAt != nil, false)
			}
		})
	}
}

// A deletion backup that is damaged is told to who runs the service. The database can be recovered, but the file not be
// downloaded.
func TestADamagedDeletionBackup(t *testing.T) {
	w := newDeletionWorld(t)
	db := w.source()
	w.deleted(db)
	w.rots(db, w.tombstone().Tombstone.Filename)
	events := w.events()
	for w.server.Calls("RereadBackup") == 0 {
		w.clock.Advance(time.Hour)
		ok(t, w.Rounds.Once(w.ctx))
	}
	w.runAll()
	s := w.tombstone()
	equal(t, "status", s.Status, rule.Recoverable)
	equal(t, "downloadable", s.Downloadable, false)
	refused(t, w.downloads(db), fault.DeletionBackupNotAvailable)
	equal(t, "entries", w.logged(db, audit.BackupDamaged), 1)
	equal(t, "told", slices.Equal(w.events(), events), true)
	w.recovered(db)
	equal(t, "status", w.status(db), database.Active)
	b := w.backups(w.reached(db))[0]
	equal(t, "to be restored", b.VerifiedAt != nil, false)
}
