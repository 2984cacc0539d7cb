package agent

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const backupName = "20261121_065347.sql.gz"

// backedUp makes a database and a finished backup of it.
func backedUp(t *testing.T, s Stand, verify bool) (ports.Fence, command.Backup, command.BackupReport) {
	t.Helper()
	db, _ := made(t, s)
	fence, spec := newFence(), command.Backup{DatabaseID: db.DatabaseID, Filename: backupName, Verify: verify}
	return fence, spec, finish(t, s, fence, spec)
}

// finish asks until the backup has come to its end.
func finish(t *testing.T, s Stand, fence ports.Fence, spec command.Backup) command.BackupReport {
	t.Helper()
	return over(t, s, fence, spec, func(r command.BackupReport) (bool, int) { return r.State == command.BackupRunning, r.Progress })
}

func backupVerified(t *testing.T, s Stand) {
	began := time.Now().Add(-time.Minute)
	_, spec, report := backedUp(t, s, true)
	if report.State != command.BackupDone || report.Progress != 100 || !report.RoleManifest || len(report.ManifestSHA256) != 64 {
		t.Errorf("got %+v", report)
	}
	if report.VerifiedAt == nil || report.VerifiedAt.Before(began) {
		t.Errorf("verified at %v", report.VerifiedAt)
	}
	wantFile(t, s, spec, report)
	wantManifest(t, s, spec, report)
}

func backupUnverified(t *testing.T, s Stand) {
	_, spec, report := backedUp(t, s, false)
	if report.State != command.BackupDone || report.VerifiedAt != nil {
		t.Errorf("got %+v", report)
	}
	wantFile(t, s, spec, report)
}

// A file that becomes larger than it may is refused, and nothing of it is left; with enough room it is made.
func backupBounded(t *testing.T, s Stand) {
	db, _ := made(t, s)
	spec := command.Backup{DatabaseID: db.DatabaseID, Filename: backupName, MaxBytes: 20}
	report := finish(t, s, newFence(), spec)
	if report.State != command.BackupFailed || report.Reason != command.ReasonStorageFull ||
		!strings.Contains(report.Message, "20 bytes") {
		t.Errorf("got %+v", report)
	}
	_, err := s.Agent.Open(bounded(t), command.OpenBackup{DatabaseID: db.DatabaseID, Filename: backupName})
	wantReason(t, err, command.ReasonNotFound)
	spec.MaxBytes = 1 << 30
	wantFile(t, s, spec, finish(t, s, newFence(), spec))
}

// wantFile checks that the file is what the report says, and a whole dump.
func wantFile(t *testing.T, s Stand, spec command.Backup, report command.BackupReport) {
	t.Helper()
	file := must(s.Agent.Open(bounded(t), command.OpenBackup{DatabaseID: spec.DatabaseID, Filename: spec.Filename}))(t)
	defer file.Body.Close()
	stored := must(io.ReadAll(file.Body))(t)
	sum := sha256.Sum256(stored)
	if n := int64(len(stored)); n != file.Size || n != report.SizeBytes || hex.EncodeToString(sum[:]) != report.ChecksumSHA256 {
		t.Errorf("%d bytes with SHA-256 %x, announced as %d, reported as %d with %s",
			n, sum, file.Size, report.SizeBytes, report.ChecksumSHA256)
	}
	z := must(gzip.NewReader(bytes.NewReader(stored)))(t)
	text := must(io.ReadAll(z))(t)
	if !strings.Contains(string(text), "PostgreSQL database dump complete") {
		t.Errorf("the file is no whole dump: it has %d bytes of SQL", len(text))
	}
}

// wantManifest checks that the manifest is what the report says, and that of the file.
func wantManifest(t *testing.T, s Stand, spec command.Backup, report command.BackupReport) {
	t.Helper()
	file := must(s.Agent.Open(bounded(t), command.OpenManifest{DatabaseID: spec.DatabaseID, Filename: spec.Filename}))(t)
	defer file.Body.Close()
	m, err := backup.ParseManifest(must(io.ReadAll(file.Body))(t))
	noError(t, err)
	if m.SHA256 != report.ManifestSHA256 || m.DatabaseID != spec.DatabaseID || m.File.SHA256 != report.ChecksumSHA256 {
		t.Errorf("the manifest %s of %s is for a file %s; the report is %+v", m.SHA256, m.DatabaseID, m.File.SHA256, report)
	}
}

func wantNoFile(t *testing.T, s Stand, db id.DatabaseID, filename backup.Filename) {
	t.Helper()
	file, err := s.Agent.Open(bounded(t), command.OpenBackup{DatabaseID: db, Filename: filename})
	if err == nil {
		file.Body.Close()
	}
	wantReason(t, err, command.ReasonNotFound)
	manifest, err := s.Agent.Open(bounded(t), command.OpenManifest{DatabaseID: db, Filename: filename})
	if err == nil {
		manifest.Body.Close()
	}
	wantReason(t, err, command.ReasonNotFound)
}

func backupAgain(t *testing.T, s Stand) {
	fence, spec, report := backedUp(t, s, true)
	fence.Epoch++
	again := must(ports.Do(bounded(t), s.Agent, fence, spec))(t)
	if !reflect.DeepEqual(again, report) {
		t.Errorf("first %+v, then %+v", report, again)
	}
	fence.Epoch--
	s.refuses(t, fence, spec, command.ReasonFenced)
}

func backupConflict(t *testing.T, s Stand) {
	fence, spec, _ := backedUp(t, s, false)
	spec.Filename = "20261121_065348.sql.gz"
	s.refuses(t, fence, spec, command.ReasonConflict)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
}

func backupOfNothing(t *testing.T, s Stand) {
	spec := command.Backup{DatabaseID: newID[id.DatabaseID](), Filename: backupName}
	s.refuses(t, newFence(), spec, command.ReasonNotFound)
	wantReason(t, ask(bounded(t), s.Agent, command.RoomForBackup{DatabaseID: spec.DatabaseID}), command.ReasonNotFound)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
}

// backupClosed closes a backup right after its start. On a real server it may have been faster: then it must be whole.
func backupClosed(t *testing.T, s Stand) {
	db, _ := made(t, s)
	noError(t, ask(bounded(t), s.Agent, command.RoomForBackup{DatabaseID: db.DatabaseID}))
	fence, spec := newFence(), command.Backup{DatabaseID: db.DatabaseID, Filename: backupName, Verify: true}
	must(ports.Do(bounded(t), s.Agent, fence, spec))(t)
	if err := ports.Close(bounded(t), s.Agent, fence); command.RefusedFor(err, command.ReasonCompleted) {
		wantFile(t, s, spec, finish(t, s, fence, spec))
		return
	} else if err != nil {
		t.Fatal(err)
	}
	s.refuses(t, fence, spec, command.ReasonClosed)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
	if second := finish(t, s, newFence(), spec); second.State != command.BackupDone {
		t.Errorf("the next backup: %+v", second)
	}
}

func backupComplete(t *testing.T, s Stand) {
	fence, spec, report := backedUp(t, s, false)
	for range 2 {
		wantReason(t, ports.Close(bounded(t), s.Agent, fence), command.ReasonCompleted)
	}
	wantFile(t, s, spec, report)
}

func backupDeleted(t *testing.T, s Stand) {
	_, spec, _ := backedUp(t, s, false)
	for range 2 { // one that is gone already is no error
		noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: spec.DatabaseID, Filename: spec.Filename}))
		wantNoFile(t, s, spec.DatabaseID, spec.Filename)
	}
}

func backupOfAnother(t *testing.T, s Stand) {
	_, spec, report := backedUp(t, s, false)
	other, _ := made(t, s)
	wantNoFile(t, s, other.DatabaseID, spec.Filename)
	noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: other.DatabaseID, Filename: spec.Filename}))
	wantFile(t, s, spec, report)
}

func backupFromAByteOn(t *testing.T, s Stand) {
	_, spec, report := backedUp(t, s, false)
	content := func(q command.Question) string {
		t.Helper()
		file := must(s.Agent.Open(bounded(t), q))(t)
		defer file.Body.Close()
		text := must(io.ReadAll(file.Body))(t)
		if int64(len(text)) != file.Size {
			t.Errorf("%+v: %d bytes, announced as %d", q, len(text), file.Size)
		}
		return string(text)
	}
	whole := content(command.OpenBackup{DatabaseID: spec.DatabaseID, Filename: spec.Filename})
	rest := command.OpenRest{DatabaseID: spec.DatabaseID, Filename: spec.Filename}
	for offset, want := range map[int64]string{
		0: whole, 1: whole[1:], report.SizeBytes - 1: whole[len(whole)-1:], report.SizeBytes: "", report.SizeBytes + 1: "",
	} {
		rest.Offset = offset
		if got := content(rest); got != want {
			t.Errorf("from %d of %d bytes on, there are %d", offset, len(whole), len(got))
		}
	}
	rest.Filename = "20261121_065348.sql.gz"
	_, err := s.Agent.Open(bounded(t), rest)
	wantReason(t, err, command.ReasonNotFound)
}

// A backup is whole, with the time of its verification. It is damaged where it is gone, or is another one than was recorded.
func backupReadAgain(t *testing.T, s Stand) {
	_, spec, report := backedUp(t, s, true)
	q := command.RereadBackup{
		DatabaseID: spec.DatabaseID, Filename: spec.Filename, SizeBytes: report.SizeBytes, ManifestSHA256: report.ManifestSHA256,
	}
	read := func(want command.ReadingState) (r command.BackupReading) {
		t.Helper()
		q.Turn++
		if r = readAgain(t, s, q); r.State != want || (r.Why == "") != (want == command.ReadingWhole) {
			t.Errorf("got %+v, want %s", r, want)
		}
		return r
	}
	if r := read(command.ReadingWhole); r.VerifiedAt == nil || !r.VerifiedAt.Equal(*report.VerifiedAt) {
		t.Errorf("verified at %v, as it says of itself at %v", report.VerifiedAt, r.VerifiedAt)
	}
	q.ManifestSHA256 = strings.Repeat("0", 64)
	read(command.ReadingDamaged)
	q.ManifestSHA256 = report.ManifestSHA256
	read(command.ReadingWhole)
	noError(t, ask(bounded(t), s.Agent, command.DeleteBackup{DatabaseID: spec.DatabaseID, Filename: spec.Filename}))
	read(command.ReadingDamaged)
}

// readAgain asks until the reading is over.
func readAgain(t *testing.T, s Stand, q command.RereadBackup) command.BackupReading {
	t.Helper()
	for ctx := bounded(t); ; {
		if r := must(ports.Ask(ctx, s.Agent, q))(t); r.State != command.ReadingRunning {
			return r
		}
	}
}
