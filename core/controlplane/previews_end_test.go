package controlplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/provision"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/database"
	rule "github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/ports"
)

// previewWorld is a world with a pipeline and the preview of its main.
type previewWorld struct {
	*world
	ci   access.Caller
	main provision.Made
}

func newPreviewWorld(t *testing.T) *previewWorld {
	t.Helper()
	w := &previewWorld{world: newWorld(t)}
	w.ci = w.pipeline(w.account, "web")
	w.main = w.opened(w.ci, ofRef("main")).Made
	for _, feature := range rollout.Features() {
		ok(t, w.Operator.SetFeature(w.ctx, feature, true))
	}
	ok(t, w.Operator.Enroll(w.ctx, w.one(), rollout.All))
	return w
}

func (w *previewWorld) one() id.DatabaseID { return w.main.Record.ID }

// ends asks for the deletion of a preview.
func (w *previewWorld) ends(cp *controlplane.ControlPlane, db id.DatabaseID) (preview.Preview, error) {
	w.t.Helper()
	r, err := cp.Previews.Reach(w.ctx, w.ci, db)
	if err != nil {
		return preview.Preview{}, err
	}
	return cp.Previews.Delete(w.ctx, r)
}

func (w *previewWorld) lease(db id.DatabaseID) preview.Lease {
	w.t.Helper()
	return w.seen(w.ci, db).Lease
}

// ended has the lease of the preview end by its time, and the service do its part.
func (w *previewWorld) ended() {
	w.t.Helper()
	w.clock.Advance(24 * time.Hour)
	w.rounds(w.ControlPlane) // ends the lease
	w.rounds(w.ControlPlane) // begins the deletion
	w.work(w.ControlPlane)
}

// concludes has the open deletion end, in no time.
func (w *previewWorld) concludes() {
	w.t.Helper()
	for range 20 {
		if w.lease(w.one()) != preview.Deleting {
			return
		}
		w.runOnce()
	}
	w.t.Fatal("the deletion does not end")
}

// deletions are how often the preview was begun to be deleted.
func (w *previewWorld) deletions() int {
	w.t.Helper()
	return count(w.activity(w.one()), audit.DeleteRequested)
}

func TestAPreviewIsDeletedAndRecovered(t *testing.T) {
	w := newPreviewWorld(t)
	deleting := must(w.ends(w.ControlPlane, w.one()))(t)
	equal(t, "its lease", deleting.Lease, preview.Deleting)
	equal(t, "found by its ref", must(w.find(w.ci, "main"))(t), deleting)
	equal(t, "asked again", must(w.ends(w.ControlPlane, w.one()))(t), deleting)
	refused(t, errOf(w.Previews.Open(w.ctx, w.ci, ofRef("main"))), fault.PreviewConflict)
	reached := must(w.Previews.Reach(w.ctx, w.ci, w.one()))(t)
	refused(t, errOf(w.Previews.Extend(w.ctx, reached, 1)), fault.PreviewLeaseEnded)
	refused(t, errOf(w.Previews.SetSchedule(w.ctx, reached, database.Daily)), fault.PreviewConflict)
	w.work(w.ControlPlane)

	deleted := must(w.ends(w.ControlPlane, w.one()))(t)
	equal(t, "its lease", deleted.Lease, preview.Deleted)
	equal(t, "its deadline", *deleted.RecoveryDeadline, w.tombstone().Tombstone.PurgeAfter)
	equal(t, "deletions", w.deletions(), 1)
	equal(t, "log-ins", w.logsIn(w.main), false)
	refused(t, errOf(w.find(w.ci, "main")), fault.PreviewNotFound)

	second := w.opened(w.ci, daily("main", 2))
	equal(t, "the second is another one", second.Fresh && second.Made.Record.Name != w.main.Record.Name, true)
	refused(t, errOf(w.recovers(w.ControlPlane, w.one())), fault.PreviewConflict)
	must(w.ends(w.ControlPlane, second.Preview.DatabaseID))(t)
	w.work(w.ControlPlane)

	must(w.recovers(w.ControlPlane, w.one()))(t)
	equal(t, "shown while it is recovered", w.lease(w.one()).Shown(), preview.Deleted)
	refused(t, errOf(w.find(w.ci, "main")), fault.PreviewNotFound)
	refused(t, errOf(w.Previews.Open(w.ctx, w.ci, ofRef("main"))), fault.PreviewConflict)
	refused(t, errOf(w.ends(w.ControlPlane, w.one())), fault.PreviewConflict)
	w.clock.Advance(time.Hour)
	must(w.Work.RunNext(w.ctx))(t)
	recovered := w.seen(w.ci, w.one())
	equal(t, "found by its ref", must(w.find(w.ci, "main"))(t), recovered)
	equal(t, "its lease", recovered.Lease, preview.Active)
	equal(t, "its end", recovered.ExpiresAt, w.clock.Now().Add(24*time.Hour))
	equal(t, "its generation", recovered.Generation, 2)
	equal(t, "no deadline", recovered.RecoveryDeadline == nil, true)
	equal(t, "log-ins", w.logsIn(w.main), true)
	equal(t, "the ref's preview", w.opened(w.ci, ofRef("main")).Preview.DatabaseID, w.one())
	refused(t, errOf(w.recovers(w.ControlPlane, second.Preview.DatabaseID)), fault.FeatureNotAvailable)
	ok(t, w.Operator.Enroll(w.ctx, second.Preview.DatabaseID, rollout.All))
	refused(t, errOf(w.recovers(w.ControlPlane, second.Preview.DatabaseID)), fault.PreviewConflict)
}

// A preview stands behind its own gate.
func TestTheGateOfAPreviewsRecovery(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.ends(w.ControlPlane, w.one()))(t)
	w.work(w.ControlPlane)
	ok(t, w.Operator.SetFeature(w.ctx, "preview-recovery", false))
	refused(t, errOf(w.recovers(w.ControlPlane, w.one())), fault.FeatureNotAvailable)
	ok(t, w.Operator.SetFeature(w.ctx, "deleted-recovery", false))
	ok(t, w.Operator.SetFeature(w.ctx, "preview-recovery", true))
	w.recovered(w.one())
}

func TestTheDeletionBackupOfAPreviewIsDownloaded(t *testing.T) {
	w := newPreviewWorld(t)
	w.ended()
	equal(t, "downloadable", w.tombstone().Downloadable, true)
	ok(t, w.downloads(w.one()))
}

func TestALeaseEndsByItsTime(t *testing.T) {
	w := newPreviewWorld(t)
	w.clock.Advance(24*time.Hour - time.Second)
	w.rounds(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Active)
	w.clock.Advance(time.Second)
	equal(t, "its lease", w.lease(w.one()), preview.Expired)
	w.rounds(w.ControlPlane)
	w.rounds(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleting)
	for range 3 {
		w.rounds(w.process(quick()))
	}
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
	equal(t, "deletions", w.deletions(), 1)
	equal(t, "its end is logged", count(w.activity(w.one()), audit.PreviewExpired), 1)
	equal(t, "databases", w.databases(), 0)
}

// A deletion that fails ends in a state: the lease stays ended, the service tries again after growing pauses, and never twice at
// a time. Whoever asks for the deletion has it at once.
func TestADeletionOfAPreviewThatFails(t *testing.T) {
	w := newPreviewWorld(t)
	w.refusing("Backup", command.ReasonFailed)
	w.clock.Advance(24 * time.Hour)
	w.rounds(w.ControlPlane)
	w.rounds(w.ControlPlane)
	w.concludes()
	equal(t, "its lease", w.lease(w.one()), preview.Expired)
	equal(t, "deletions", w.deletions(), 1)
	reached := must(w.Previews.Reach(w.ctx, w.ci, w.one()))(t)
	refused(t, errOf(w.Previews.Extend(w.ctx, reached, 1)), fault.PreviewLeaseEnded)
	refused(t, errOf(w.Previews.Open(w.ctx, w.ci, ofRef("main"))), fault.PreviewConflict)
	for n := 2; n < 10; n++ {
		next := *w.seen(w.ci, w.one()).EndAt
		w.clock.Advance(next.Sub(w.clock.Now()) - time.Second)
		w.rounds(w.ControlPlane)
		equal(t, "deletions before its time", w.deletions(), n-1)
		w.clock.Advance(time.Second)
		w.rounds(w.ControlPlane)
		w.rounds(w.ControlPlane)
		equal(t, "deletions", w.deletions(), n)
		began := w.clock.Now()
		w.concludes()
		p := w.seen(w.ci, w.one())
		equal(t, "failures", p.Failures, n)
		equal(t, "the pause", p.EndAt.Sub(began), preview.Pause(n))
	}
	w.server.OnCall(nil)
	equal(t, "its lease", must(w.ends(w.ControlPlane, w.one()))(t).Lease, preview.Deleting)
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
}

// Asked for while another operation is open, the deletion follows that.
func TestADeletionOfABusyPreview(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.Backups.Start(w.ctx, w.reached(w.one())))(t)
	released := must(w.ends(w.ControlPlane, w.one()))(t)
	equal(t, "its lease", released.Lease, preview.Expired)
	equal(t, "its end", released.ExpiresAt, w.clock.Now())
	w.rounds(w.ControlPlane)
	equal(t, "deletions beside a backup", w.deletions(), 0)
	w.work(w.ControlPlane)
	w.rounds(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleting)
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
}

// While its outcome is unknown, a deletion is held: nobody begins another one.
func TestAnUnknownOutcomeIsHeld(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.ends(w.ControlPlane, w.one()))(t)
	w.server.SetUnreachable(true)
	for range 5 {
		w.clock.Advance(time.Hour)
		w.runOnce()
		w.rounds(w.ControlPlane)
		equal(t, "its lease", must(w.ends(w.ControlPlane, w.one()))(t).Lease, preview.Deleting)
	}
	w.server.SetUnreachable(false)
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
	equal(t, "deletions", w.deletions(), 1)
}

// A recovery that fails, or is canceled before it begins, leaves the ref free.
func TestAPreviewThatIsNotRecovered(t *testing.T) {
	for what, ends := range map[string]func(w *previewWorld, o operation.Operation){
		"it fails": func(w *previewWorld, _ operation.Operation) {
			w.refusing("Rejoin", command.ReasonFailed)
			w.work(w.ControlPlane)
			w.server.OnCall(nil)
		},
		"it is canceled": func(w *previewWorld, o operation.Operation) { must(w.Operator.CancelOperation(w.ctx, o.ID))(w.t) },
	} {
		t.Run(what, func(t *testing.T) {
			w := newPreviewWorld(t)
			must(w.ends(w.ControlPlane, w.one()))(t)
			w.work(w.ControlPlane)
			ends(w, must(w.recovers(w.ControlPlane, w.one()))(t))
			equal(t, "its lease", w.lease(w.one()), preview.Deleted)
			equal(t, "a new one", w.opened(w.ci, ofRef("main")).Fresh, true)
		})
	}
}

// What is canceled by the account is tried again: the lease has ended.
func TestADeletionThatIsCanceled(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.ends(w.ControlPlane, w.one()))(t)
	must(w.Operator.CancelOperation(w.ctx, w.newest().ID))(t)
	equal(t, "its lease", w.lease(w.one()), preview.Expired)
	equal(t, "log-ins", w.logsIn(w.main), true)
	w.clock.Advance(preview.Pause(1))
	w.rounds(w.ControlPlane)
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
}

// An operator's deletion ends the lease, too.
func TestAnOperatorDeletesAPreview(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.Operator.DeleteUnverified(w.ctx, w.one(), "somebody", "it cannot be verified"))(t)
	equal(t, "its lease", w.lease(w.one()), preview.Deleting)
	w.work(w.ControlPlane)
	equal(t, "its lease", w.lease(w.one()), preview.Deleted)
	equal(t, "a new one", w.opened(w.ci, ofRef("main")).Fresh, true)
}

// Nothing is left of a preview that is purged, and its name is free.
func TestAPreviewIsPurged(t *testing.T) {
	w := newPreviewWorld(t)
	w.ended()
	w.purged(w.ControlPlane)
	refused(t, errOf(w.Previews.Reach(w.ctx, w.ci, w.one())), fault.PreviewNotFound)
	equal(t, "the name of the next one", w.opened(w.ci, ofRef("main")).Made.Record.Name, w.main.Record.Name)
}

// What brings databases back, or makes others of them, is not for previews.
func TestPreviewsAreClosedToTheRoutesOfDatabases(t *testing.T) {
	w := newPreviewWorld(t)
	must(w.Backups.Start(w.ctx, w.reached(w.one())))(t)
	w.work(w.ControlPlane)
	file := w.backups(w.reached(w.one()))[0].Filename
	through := func(g rollout.Gate) access.Reached {
		return must(w.Access.Reach(w.ctx, w.caller, w.one(), account.Own, g))(t)
	}
	for what, err := range map[string]error{
		"a clone": errOf(w.Clones.Start(w.ctx, through(rollout.Clone), clone.Request{Name: "copy", DisplayName: "A copy"})),
		"a clone of a file": errOf(w.Clones.Start(w.ctx, through(rollout.Clone), clone.Request{
			Name: "copy", DisplayName: "A copy", Filename: &file,
		})),
		"a deletion":          errOf(w.Deletion.Delete(w.ctx, through(rollout.Delete))),
		"a restore":           errOf(w.Restores.Start(w.ctx, through(rollout.Restore), file, restore.Consents{})),
		"a managed restore":   errOf(w.Restores.Reserve(w.ctx, w.reached(w.one()), restore.Request{Filename: file, Key: "k"})),
		"an upload":           errOf(w.Uploads.Announce(w.ctx, through(rollout.RestoreUpload), 1, sumOfNothing)),
		"a part of an upload": errOf(w.Uploads.Send(w.ctx, through(rollout.RestoreUpload), id.UploadID(w.one()), uploads.Content{})),
		"its restore": errOf(w.Uploads.Complete(
			w.ctx, through(rollout.RestoreUpload), id.UploadID(w.one()), restore.Consents{})),
	} {
		if !fault.Has(err, fault.PreviewConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "its lease", w.lease(w.one()), preview.Active)
}

// mortalStore is that of a process which dies before its n-th transaction.
type mortalStore struct {
	ports.Store
	left *int
}

// Update implements ports.Store.
func (s mortalStore) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	if *s.left--; *s.left < 0 {
		panic(crash{"a transaction"})
	}
	return s.Store.Update(ctx, fn)
}

// The end of a lease and the beginning of the deletion are transactions of their own. Whoever dies between any two leaves a
// preview that works and whose lease has ended, or one whose deletion is queued; another process goes on, and deletes it once.
func TestDyingBetweenTheTransactionsThatEndALease(t *testing.T) {
	between := 0
	for n, died := 0, true; died; n++ {
		w, left := newPreviewWorld(t), n
		w.clock.Advance(24 * time.Hour)
		p := w.ports
		p.Store = mortalStore{w.store, &left}
		died = dies(func() {
			cp := must(controlplane.New(p, quick()))(t)
			w.rounds(cp)
			w.rounds(cp)
		})
		queued := w.deletions()
		equal(t, "its lease", w.lease(w.one()) == preview.Deleting, queued == 1)
		equal(t, "its database", w.status(w.one()) == database.Deleting, queued == 1)
		equal(t, "log-ins", w.logsIn(w.main), true)
		if over := must(w.over())(t); !over && queued == 0 {
			between++ // the lease has ended, and nobody has begun the deletion
		}
		w.rounds(w.ControlPlane)
		w.rounds(w.ControlPlane)
		w.work(w.ControlPlane)
		equal(t, "its lease", w.lease(w.one()), preview.Deleted)
		equal(t, "deletions", w.deletions(), 1)
		equal(t, "its end is logged", count(w.activity(w.one()), audit.PreviewExpired), 1)
	}
	if between == 0 {
		t.Error("nobody died between the end of the lease and the deletion")
	}
}

// over reports whether there are leases whose time is over and that have not ended.
func (w *previewWorld) over() (bool, error) {
	return ports.Read(w.ctx, w.store, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Previews().Over(ctx, w.clock.Now())
	})
}

const sumOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Killed at any point, the next process finishes a deletion that a pipeline has asked for, or that the service has begun.
func TestTheEndOfAPreviewSurvivesEveryCrash(t *testing.T) {
	for what, begins := range map[string]func(w *previewWorld, cp *controlplane.ControlPlane){
		"asked for": func(w *previewWorld, cp *controlplane.ControlPlane) { _, _ = w.ends(cp, w.one()) },
		"its time": func(w *previewWorld, cp *controlplane.ControlPlane) {
			w.clock.Advance(24 * time.Hour)
			w.rounds(cp)
			w.rounds(cp)
		},
	} {
		t.Run(what, func(t *testing.T) {
			var p *previewWorld
			killed(t, rule.KindDelete,
				func(w *world) {
					p = &previewWorld{world: w, ci: w.pipeline(w.account, "web")}
					p.main = w.opened(p.ci, ofRef("main")).Made
				},
				func(_ *world, cp *controlplane.ControlPlane) {
					begins(p, cp)
					p.work(cp)
				},
				func(w *world) {
					w.rounds(w.ControlPlane)
					w.work(w.ControlPlane)
					equal(w.t, "its lease", p.lease(p.one()), preview.Deleted)
					equal(w.t, "deletions", p.deletions(), 1)
					equal(w.t, "a new one", w.opened(p.ci, ofRef("main")).Fresh, true)
				})
		})
	}
}
