package conformance

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

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

const backupName = "20261121_065347.sql.gz"

// backedUp makes a database and a finished backup of it.
func backedUp(t *testing.T, s AgentStand, verify bool) (ports.Fence, ports.BackupSpec, ports.BackupReport) {
	t.Helper()
	db, _ := made(t, s)
	fence, spec := newFence(), ports.BackupSpec{DatabaseID: db.ID, Filename: backupName, Verify: verify}
	return fence, spec, finish(t, s, fence, spec)
}

// finish asks until the backup has come to its end. Progress never goes back.
func finish(t *testing.T, s AgentStand, fence ports.Fence, spec ports.BackupSpec) ports.BackupReport {
	t.Helper()
	ctx, before := bounded(t), 0
	for ctx.Err() == nil {
		report, err := s.Agent.Backup(ctx, fence, spec)
		noError(t, err)
		if report.Progress < before || report.Progress > 100 {
			t.Errorf("progress went from %d to %d", before, report.Progress)
		}
		if before = report.Progress; report.State != ports.BackupRunning {
			return report
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the backup did not come to an end")
	return ports.BackupReport{}
}

func backupVerified(t *testing.T, s AgentStand) {
	began := time.Now().Add(-time.Minute)
	_, spec, report := backedUp(t, s, true)
	if report.State != ports.BackupDone || report.Progress != 100 || !report.RoleManifest {
		t.Errorf("got %+v", report)
	}
	if report.VerifiedAt == nil || report.VerifiedAt.Before(began) {
		t.Errorf("verified at %v", report.VerifiedAt)
	}
	wantFile(t, s, spec, report)
}

func backupUnverified(t *testing.T, s AgentStand) {
	_, spec, report := backedUp(t, s, false)
	if report.State != ports.BackupDone || report.VerifiedAt != nil {
		t.Errorf("got %+v", report)
	}
	wantFile(t, s, spec, report)
}

// wantFile checks that the file is what the report says, and a whole dump.
func wantFile(t *testing.T, s AgentStand, spec ports.BackupSpec, report ports.BackupReport) {
	t.Helper()
	file, err := s.Agent.OpenBackup(bounded(t), spec.DatabaseID, spec.Filename)
	noError(t, err)
	defer file.Body.Close()
	stored, err := io.ReadAll(file.Body)
	noError(t, err)
	sum := sha256.Sum256(stored)
	if n := int64(len(stored)); n != file.Size || n != report.SizeBytes || hex.EncodeToString(sum[:]) != report.ChecksumSHA256 {
		t.Errorf("%d bytes with SHA-256 %x, announced as %d, reported as %d with %s",
			n, sum, file.Size, report.SizeBytes, report.ChecksumSHA256)
	}
	z, err := gzip.NewReader(bytes.NewReader(stored))
	noError(t, err)
	text, err := io.ReadAll(z)
	noError(t, err)
	if !strings.Contains(string(text), "PostgreSQL database dump complete") {
		t.Errorf("the file is no whole dump: it has %d bytes of SQL", len(text))
	}
}

func wantNoFile(t *testing.T, s AgentStand, db id.DatabaseID, filename string) {
	t.Helper()
	file, err := s.Agent.OpenBackup(bounded(t), db, filename)
	if err == nil {
		file.Body.Close()
	}
	wantReason(t, err, ports.ReasonNotFound)
}

func backupAgain(t *testing.T, s AgentStand) {
	fence, spec, report := backedUp(t, s, true)
	fence.Epoch++
	again, err := s.Agent.Backup(bounded(t), fence, spec)
	noError(t, err)
	if !reflect.DeepEqual(again, report) {
		t.Errorf("first %+v, then %+v", report, again)
	}
	fence.Epoch--
	_, err = s.Agent.Backup(bounded(t), fence, spec)
	wantReason(t, err, ports.ReasonFenced)
}

func backupConflict(t *testing.T, s AgentStand) {
	fence, spec, _ := backedUp(t, s, false)
	spec.Filename = "20261121_065348.sql.gz"
	_, err := s.Agent.Backup(bounded(t), fence, spec)
	wantReason(t, err, ports.ReasonConflict)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
}

func backupOfNothing(t *testing.T, s AgentStand) {
	spec := ports.BackupSpec{DatabaseID: agentID[id.DatabaseID](), Filename: backupName}
	_, err := s.Agent.Backup(bounded(t), newFence(), spec)
	wantReason(t, err, ports.ReasonNotFound)
	wantReason(t, s.Agent.RoomForBackup(bounded(t), spec.DatabaseID), ports.ReasonNotFound)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
}

// backupClosed closes a backup right after its start. On a real server it may have been faster: then it must be whole.
func backupClosed(t *testing.T, s AgentStand) {
	db, _ := made(t, s)
	noError(t, s.Agent.RoomForBackup(bounded(t), db.ID))
	fence, spec := newFence(), ports.BackupSpec{DatabaseID: db.ID, Filename: backupName, Verify: true}
	_, err := s.Agent.Backup(bounded(t), fence, spec)
	noError(t, err)
	if err := s.Agent.Close(bounded(t), fence); ports.RefusedFor(err, ports.ReasonCompleted) {
		wantFile(t, s, spec, finish(t, s, fence, spec))
		return
	} else if err != nil {
		t.Fatal(err)
	}
	_, err = s.Agent.Backup(bounded(t), fence, spec)
	wantReason(t, err, ports.ReasonClosed)
	wantNoFile(t, s, spec.DatabaseID, spec.Filename)
	if second := finish(t, s, newFence(), spec); second.State != ports.BackupDone {
		t.Errorf("the next backup: %+v", second)
	}
}

func backupComplete(t *testing.T, s AgentStand) {
	fence, spec, report := backedUp(t, s, false)
	for range 2 {
		wantReason(t, s.Agent.Close(bounded(t), fence), ports.ReasonCompleted)
	}
	wantFile(t, s, spec, report)
}

func backupDeleted(t *testing.T, s AgentStand) {
	_, spec, _ := backedUp(t, s, false)
	for range 2 { // one that is gone already is no error
		noError(t, s.Agent.DeleteBackup(bounded(t), spec.DatabaseID, spec.Filename))
		wantNoFile(t, s, spec.DatabaseID, spec.Filename)
	}
}

func backupOfAnother(t *testing.T, s AgentStand) {
	_, spec, report := backedUp(t, s, false)
	other, _ := made(t, s)
	wantNoFile(t, s, other.ID, spec.Filename)
	noError(t, s.Agent.DeleteBackup(bounded(t), other.ID, spec.Filename))
	wantFile(t, s, spec, report)
}
