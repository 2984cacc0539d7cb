package diskroom_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// Four verifications at the same moment, with room for one and a half.
func TestBackupsThatDoNotFitTogetherWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	var admitted, together atomic.Int64
	w.Agent.Crash = func(point string) {
		switch point {
		case "backup.reserved":
			together.Store(max(together.Load(), admitted.Add(1)))
			time.Sleep(100 * time.Millisecond)
		case "backup.verify.dropped":
			admitted.Add(-1)
		}
	}
	var group sync.WaitGroup
	queued := make([]backuptest.Stages, 4)
	for n := range queued {
		group.Go(func() {
			result, err := w.Agent.Run(t.Context(), w.Numbered(n), queued[n].Add)
			if err != nil || result.VerifiedAt == nil {
				t.Errorf("backup %d: %v, verified at %v", n, err, result.VerifiedAt)
			}
		})
	}
	group.Wait()
	waited := 0
	for n := range queued {
		if slices.Contains(queued[n].Seen(), jobs.StageQueued) {
			waited++
		}
	}
	if together.Load() != 1 || waited != 3 {
		t.Errorf("%d had room together, %d waited", together.Load(), waited)
	}
	if n := w.Reservations(); n != 0 {
		t.Errorf("%d reservations are left", n)
	}
}

func TestWaitingForRoomEnds(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.Cramped(backuptest.RoomFor, func(c *backuptest.Config) { c.RoomWait = 300 * time.Millisecond })
	release := w.HoldFirst(w.Numbered(1))
	var seen backuptest.Stages
	_, err := w.Agent.Run(t.Context(), w.Numbered(2), seen.Add)
	if !fault.Has(err, fault.BackupStorageFull) || !strings.Contains(err.Error(), "had no room for another backup for 300ms") {
		t.Errorf("one that waited too long: %v", err)
	}
	if got := seen.Seen(); !slices.Equal(got, []string{jobs.StageQueued}) {
		t.Errorf("its stages: %v", got)
	}
	if n := w.Reservations(); n != 2 {
		t.Errorf("%d reservations, want those of the first backup's dump and copy", n)
	}
	small := w.Numbered(3)
	small.Verify = false
	if _, err := w.Agent.Run(t.Context(), small, backuptest.Unseen); err != nil {
		t.Errorf("a small one beside it: %v", err)
	}
	release()
}

func TestABackupThatWaitsForRoomCanBeCanceled(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	release := w.HoldFirst(w.Numbered(1))
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	_, err := w.Agent.Run(ctx, w.Numbered(2), func(string, int, command.Bytes) { cancel() })
	if err == nil || fault.Has(err, fault.BackupStorageFull) || time.Since(began) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if n := w.Reservations(); n != 2 {
		t.Errorf("%d reservations, want those of the first backup", n)
	}
	release()
}

// What does not fit even alone is refused at once, and said before anything is queued.
func TestRoomIsRefusedOnlyWhereItWouldNotDoAlone(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	d := w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	release := w.HoldFirst(w.Numbered(1))
	if err := w.Agent.Room.HasRoom(t.Context(), 2*backuptest.RoomFor-10); err != nil {
		t.Errorf("a dump that fits alone: %v", err)
	}
	if err := w.Agent.Room.HasRoom(t.Context(), 2*backuptest.RoomFor+10); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("a dump that does not: %v", err)
	}
	release()
	d.Free.Store(backuptest.RoomFor / 2)
	never := func(stage string, _ int, _ command.Bytes) { t.Errorf("stage %s", stage) }
	if _, err := w.Agent.Run(t.Context(), w.Numbered(2), never); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("a copy without room: %v", err)
	}
}

// An agent that resumes a verification needs room for its copy alone.
func TestAResumedVerificationNeedsRoomForItsCopy(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	d := w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	dumped := w.Request()
	dumped.Verify = false
	w.Backup(dumped)
	d.Free.Store(0)
	if _, err := w.Run(w.Agent, w.Request()); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("without room: %v", err)
	}
	d.Free.Store(backuptest.RoomFor)
	dumps, copied := -1, -1
	w.Agent.Crash = func(point string) {
		if point == "backup.reserved" {
			dumps, copied = w.Held(diskroom.Dump).Count, w.Held(diskroom.Copy).Count
		}
	}
	if result, err := w.Run(w.Agent, w.Request()); err != nil || result.VerifiedAt == nil || dumps != 0 || copied != 1 {
		t.Errorf("with room: %v, reserved for %d dumps and %d copies", err, dumps, copied)
	}
}
