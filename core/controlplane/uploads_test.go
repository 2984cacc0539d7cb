package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

// The file comes in pieces, of which the last is sent again in vain; the restore is the one that everybody gets who completes it.
func TestARestoreFromAnUpload(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of, half := u.announced(), len(u.file)/2
	u.wantReceived(of, 0)
	refused(t, errOf(u.complete(of)), fault.BackupConflict)
	equal(t, "received", must(u.send(of, 0, half))(t), int64(half))
	refused(t, errOf(u.send(of, 0, half)), fault.BackupConflict)
	refused(t, errOf(u.send(of, half+1, len(u.file))), fault.BackupConflict)
	refused(t, errOf(u.complete(of)), fault.BackupConflict)
	u.wantReceived(of, int64(half))
	must(u.send(of, half, len(u.file)))(t)

	o := must(u.complete(of))(t)
	equal(t, "completed again", must(u.complete(of))(t).ID, o.ID)
	_, err := u.Uploads.Complete(u.ctx, u.r, of.ID, restore.Consents{AcceptIncomplete: true})
	refused(t, err, fault.BackupConflict)
	refused(t, errOf(u.send(of, 0, half)), fault.UploadNotFound)
	refused(t, errOf(u.Backups.Start(u.ctx, u.r)), fault.DatabaseStateConflict)
	u.work(u.ControlPlane)
	u.wantUploaded(of)
	u.wantNothingLeft()
	refused(t, errOf(u.complete(of)), fault.UploadNotFound)
	log := u.activity(u.only().ID)
	equal(t, "requests in the log", count(log, audit.RestoreRequested), 1)
	equal(t, "ends in the log", count(log, audit.RestoreFinished), 1)
	equal(t, "events", strings.Join(u.events(), " "), "restore.succeeded")
}

// wantUploaded expects that the last restore has brought what the upload holds, and nothing else.
func (u *uploader) wantUploaded(of upload.Upload) {
	u.t.Helper()
	o := u.newest()
	equal(u.t, "status", o.Status, operation.Succeeded)
	equal(u.t, "result", string(o.Result), `{"uploadId":"`+string(of.ID)+
		`","notes":[],"change":{"tables":{"before":0,"after":1},"rows":{"before":0,"after":0}}}`)
	equal(u.t, "uploaded", u.server.HasTable("shop", "uploaded"), true)
	equal(u.t, "copies", u.server.Copies(), 0)
	equal(u.t, "log-ins", u.logsIn(u.latest), true)
}

func TestARestoreFromAnUploadSurvivesEveryCrash(t *testing.T) {
	var u *uploader
	var of upload.Upload
	killed(t, restores.Kind, func(w *world) {
		u = w.uploader("shop", database.SingleLogin)
		of = u.whole()
	}, func(w *world, cp *controlplane.ControlPlane) {
		_, _ = cp.Uploads.Complete(w.ctx, u.r, of.ID, restore.Consents{})
		w.work(cp)
	}, func(*world) {
		u.wantUploaded(of)
		u.wantNothingLeft()
	})
}

func TestWhoMayUploadAndWhen(t *testing.T) {
	managed := newUploader(t, database.Managed)
	refused(t, errOf(managed.announce()), fault.ManagedRoleConflict)

	u := newUploader(t, database.SingleLogin)
	refused(t, errOf(u.Uploads.Announce(u.ctx, u.r, upload.MostBytes+1, u.sum)), fault.ValidationError)
	refused(t, errOf(u.complete(upload.Upload{ID: "0189abcd-ef01-4234-8567-89abcdef0123"})), fault.UploadNotFound)
	of := u.whole()
	must(u.Backups.Start(u.ctx, u.r))(t)
	refused(t, errOf(u.complete(of)), fault.DatabaseStateConflict)
	u.work(u.ControlPlane)

	other := u.uploader("other", database.SingleLogin)
	refused(t, errOf(other.complete(of)), fault.UploadNotFound)
	refused(t, errOf(other.send(of, 0, 1)), fault.UploadNotFound)
	must(u.complete(of))(t)
}

// A file that is not what was announced is refused before anything of it is read, and the database stays as it is.
func TestAnotherFileThanWasAnnounced(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	u.file[len(u.file)-1] ^= 1
	of := u.whole()
	must(u.complete(of))(t)
	u.work(u.ControlPlane)
	wantFailure(t, u.newest(), fault.ValidationError,
		"the upload is not the file that was announced: its size or SHA-256 differs")
	equal(t, "uploaded", u.server.HasTable("shop", "uploaded"), false)
	u.wantNothingLeft()
}

// A file that may be a part of a dump only takes no database's place, unless its owner accepts that, which the result repeats.
func TestAnUploadThatMayBeAPart(t *testing.T) {
	for accepted, result := range map[bool]string{true: `"acceptIncomplete":true`, false: ""} {
		u := newUploader(t, database.SingleLogin)
		u.packs("CREATE TABLE uploaded (n int);\n")
		o := must(u.Uploads.Complete(u.ctx, u.r, u.whole().ID, restore.Consents{AcceptIncomplete: accepted}))(t)
		u.work(u.ControlPlane)
		equal(t, "uploaded", u.server.HasTable("shop", "uploaded"), accepted)
		ended := u.newest()
		equal(t, "the operation", ended.ID, o.ID)
		if accepted && !strings.Contains(string(ended.Result), result) {
			t.Errorf("the result is %s", ended.Result)
		}
		if !accepted && ended.ErrorCode != fault.UploadIncomplete {
			t.Errorf("it failed with %s: %s", ended.ErrorCode, ended.ErrorText)
		}
		u.wantNothingLeft()
	}
}

// An upload that holds more than the database may does not take its place. What counts is the quota when it was complete.
func TestAnUploadBeyondTheQuota(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of := u.whole()
	u.quota(1)
	must(u.complete(of))(t)
	u.quota(aQuota)
	u.work(u.ControlPlane)
	wantFailure(t, u.newest(), fault.ValidationError, "the upload holds more than the database may")
	equal(t, "uploaded", u.server.HasTable("shop", "uploaded"), false)
	u.wantNothingLeft()
}

var errSender = errors.New("the sender has gone")

// What has come of a piece that breaks off is kept, whatever ended it.
func TestAPieceThatBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		after   func(u *uploader) error // at the end of the first half
		refused fault.Code
	}{
		"the sender goes":  {func(*uploader) error { return errSender }, fault.AgentError},
		"it ends early":    {func(*uploader) error { return io.EOF }, fault.AgentError},
		"the agent goes":   {func(u *uploader) error { u.server.SetUnreachable(true); return nil }, fault.AgentError},
		"the disk is full": {func(u *uploader) error { u.server.SetStorageFull(true); return nil }, fault.BackupStorageFull},
		"it is slow": {func(*uploader) error {
			return fault.New(fault.RequestTimeout, "the request body did not arrive in time")
		}, fault.RequestTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUploader(t, database.SingleLogin)
			of, half := u.announced(), len(u.file)/2
			broken := func() (err error) { return c.after(u) }
			err := u.from(u.ctx, of, io.MultiReader(bytes.NewReader(u.file[:half]), hook(broken), bytes.NewReader(u.file[half:])))
			refused(t, err, c.refused)
			u.server.SetUnreachable(false)
			u.server.SetStorageFull(false)
			u.wantReceived(of, int64(half))
			must(u.send(of, half, len(u.file)))(t)
			must(u.complete(of))(t)
		})
	}
}

// hook is a reader that brings nothing: it does something, and ends with an error or where there is none.
type hook func() error

func (h hook) Read([]byte) (int, error) {
	switch err := h(); err {
	case nil:
		return 0, io.EOF // the next reader's turn
	case io.EOF:
		return 0, io.ErrUnexpectedEOF
	default:
		return 0, err
	}
}

// While a piece comes, no other one of the same upload does.
func TestTwoPiecesAtOnce(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of := u.announced()
	ok(t, u.from(u.ctx, of, io.MultiReader(hook(func() error {
		err := u.from(u.ctx, of, bytes.NewReader(u.file))
		refused(t, err, fault.BackupConflict)
		return nil
	}), bytes.NewReader(u.file))))
	u.wantReceived(of, int64(len(u.file)))
}

// Who loses the key meanwhile sends no more after five seconds; what has come stays.
func TestAnUploadEndsWithTheRightToIt(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of, half := u.announced(), len(u.file)/2
	later := hook(func() error {
		ok(t, u.Operator.RevokeKey(u.ctx, u.caller.Key.ID))
		u.clock.Advance(5 * time.Second)
		return nil
	})
	rest := iotest.OneByteReader(bytes.NewReader(u.file[half:]))
	err := u.from(u.ctx, of, io.MultiReader(bytes.NewReader(u.file[:half]), later, rest))
	refused(t, err, fault.DatabaseNotFound)
	equal(t, "files", u.server.Uploads(), 1)
	u.clock.Advance(time.Hour)
	u.wantNothingLeft()
}

// An upload has an hour. A piece that comes at its end is broken off, and what has come is removed.
func TestAnUploadExpires(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of := u.whole()
	u.clock.Advance(time.Hour - time.Microsecond)
	u.wantReceived(of, int64(len(u.file)))
	ok(t, u.Rounds.Once(u.ctx))
	equal(t, "files", u.server.Uploads(), 1)
	u.clock.Advance(time.Microsecond)
	refused(t, errOf(u.complete(of)), fault.UploadNotFound)
	refused(t, errOf(u.send(of, 0, 1)), fault.UploadNotFound)
	u.wantNothingLeft()

	of = u.announced()
	u.clock.Advance(time.Hour - 50*time.Millisecond)
	slow := hook(func() error { time.Sleep(100 * time.Millisecond); return nil })
	refused(t, u.from(u.ctx, of, io.MultiReader(slow, bytes.NewReader(u.file))), fault.UploadNotFound)
}

// A server keeps an upload for a restore that has to wait, and removes one that nobody knows of any more.
func TestAServerAlone(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of := u.whole()
	must(u.complete(of))(t)
	u.clock.Advance(24 * time.Hour)
	ok(t, u.Rounds.Once(u.ctx))
	u.work(u.ControlPlane)
	u.wantUploaded(of)

	restore := u.store.Backup()
	u.whole()
	restore()
	equal(t, "files that nobody knows of", u.server.Uploads() > 0, true)
	u.clock.Advance(25 * time.Hour)
	equal(t, "files", u.server.Uploads(), 0)
}

// An account has four uploads at most, on all of its databases. One more for the same database takes the place of the first.
func TestAnAccountHasFourUploads(t *testing.T) {
	w := newWorld(t)
	var list []*uploader
	for i := range upload.MostOpen + 1 {
		list = append(list, w.uploader(fmt.Sprintf("shop%d", i), database.SingleLogin))
	}
	for _, u := range list[:upload.MostOpen] {
		u.announced()
	}
	last := list[upload.MostOpen]
	refused(t, errOf(last.announce()), fault.BackupStorageFull)
	first := list[0]
	former := first.whole()
	first.announced()
	refused(t, errOf(first.complete(former)), fault.UploadNotFound)
	equal(t, "records", first.records(), upload.MostOpen)
	equal(t, "files", w.server.Uploads(), upload.MostOpen)
	w.clock.Advance(time.Hour)
	last.wantNothingLeft()
	last.announced()
}

// Whatever becomes of an announcement at the server, nothing is left that holds room.
func TestAnAnnouncementThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(u *uploader)
		want   fault.Code
	}{
		"no room":     {func(u *uploader) { u.server.SetStorageFull(true) }, fault.BackupStorageFull},
		"no answer":   {func(u *uploader) { u.server.LoseReplies(1) }, fault.AgentError},
		"unreachable": {func(u *uploader) { u.server.SetUnreachable(true) }, fault.AgentError},
		"too old":     {func(u *uploader) { u.outdated(true) }, fault.AgentRouteUnavailable},
		"replaced meanwhile": {func(u *uploader) {
			u.inCall("OpenUpload", 0, func() (f fakeagent.Fault) {
				u.announced()
				u.clock.Advance(time.Hour)
				ok(u.t, u.Rounds.Once(u.ctx))
				return f
			})
		}, fault.UploadNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUploader(t, database.SingleLogin)
			c.breaks(u)
			refused(t, errOf(u.announce()), c.want)
			u.server.SetStorageFull(false)
			u.server.SetUnreachable(false)
			u.outdated(false)
			u.wantNothingLeft()
			u.announced()
		})
	}
}

// One account's uploads take the slots of no other's, and a slot comes back at the end of each.
func TestUploadsHaveSlots(t *testing.T) {
	w := configured(t, narrow(1, 2, time.Millisecond))
	u := w.uploader("shop", database.SingleLogin)
	other := w.uploader("other", database.SingleLogin)
	_, _, bob := w.newAccount("bob@example.org", account.Pro)
	of, theirs := u.announced(), other.announced()
	w.caller = bob
	apart := w.uploader("apart", database.SingleLogin)
	his := apart.announced()
	ok(t, u.from(u.ctx, of, io.MultiReader(hook(func() error {
		expectLater(t, other.from(u.ctx, theirs, bytes.NewReader(other.file)), fault.RateLimited)
		ok(t, apart.from(u.ctx, his, bytes.NewReader(apart.file)))
		return nil
	}), bytes.NewReader(u.file))))
	ok(t, other.from(context.WithoutCancel(u.ctx), theirs, bytes.NewReader(other.file)))
}

// What a server refuses because it has too many of whomever can be sent again, and the refusal says when.
func TestAServerThatIsFullOfUploads(t *testing.T) {
	u := newUploader(t, database.SingleLogin)
	of := u.announced()
	u.refusing("Chunk", command.ReasonCrowded)
	expectLater(t, errOf(u.send(of, 0, 1)), fault.ServerBusy)
	u.server.OnCall(nil)
	must(u.send(of, 0, 1))(t)
}
