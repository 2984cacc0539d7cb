package diskroom_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
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
	super := w.Cluster.URL("postgres")
	clustertest.Exec(t, super, `UPDATE ledger.reservation SET used = 50000000 WHERE purpose = 'copy'`)
	if err := w.Agent.Room.HasRoom(t.Context(), 2*backuptest.RoomFor+2*49000000); err != nil {
		t.Errorf("a dump that fits once the copy is gone: %v", err)
	}
	release()
	d.Free.Store(backuptest.RoomFor / 2)
	never := func(stage string, _ int, _ command.Bytes) { t.Errorf("stage %s", stage) }
	if _, err := w.Agent.Run(t.Context(), w.Numbered(2), never); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("a copy without room: %v", err)
	}
}

// A removal that fails, say because PostgreSQL is just being restarted, must not hold room until the agent starts again.
func TestAReservationOfNobodyHoldsNoRoom(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.Cramped(backuptest.RoomFor, func(c *backuptest.Config) { c.RoomWait = time.Second })
	clustertest.Exec(t, w.Cluster.URL("postgres"), `INSERT INTO ledger.reservation (operation_id, purpose, disk, bytes, waiting)
		VALUES ('gone', 'copy', 7, 100000000, false)`)
	if _, err := w.Run(w.Agent, w.Request()); err != nil {
		t.Error(err)
	}
	if n := w.Reservations(); n != 0 {
		t.Errorf("%d reservations", n)
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
	clustertest.Exec(t, w.Cluster.URL("postgres"), fmt.Sprintf( // PostgreSQL was down when the dump ended
		`INSERT INTO ledger.reservation (operation_id, purpose, disk, bytes, waiting) VALUES ('%s', 'dump', 7, %d, false)`,
		backuptest.OperationID, int64(1)<<40))
	var purposes string
	w.Agent.Crash = func(point string) {
		if point == "backup.reserved" {
			db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
			if err := db.QueryRow(`SELECT string_agg(purpose, ' ') FROM ledger.reservation`).Scan(&purposes); err != nil {
				t.Error(err)
			}
		}
	}
	if result, err := w.Run(w.Agent, w.Request()); err != nil || result.VerifiedAt == nil || purposes != "copy" {
		t.Errorf("with room: %v, reserved for %q", err, purposes)
	}
}

// Two decisions at the same moment, of an agent and its successor too, must not both see the same room.
func TestOneDecidesAtATime(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	tx := check.Must(clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t).Begin())(t)
	defer tx.Rollback() // it only holds the lock
	check.Must(tx.Exec(`SELECT pg_advisory_xact_lock(7450018)`))(t)
	var admitted atomic.Bool
	w.Agent.Crash = func(string) { admitted.Store(true) }
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Run(context.Background(), w.Request(), backuptest.Unseen)
		ended <- err
	}()
	time.Sleep(300 * time.Millisecond)
	if admitted.Load() {
		t.Error("it was admitted while another decided")
	}
	check.NoError(t, tx.Rollback())
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
