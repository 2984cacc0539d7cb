package copies_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// readyTime is how long copies are safe from those that wait.
const readyTime = time.Second

// restoring is a world with a file to restore, and a disk.
func restoring(t *testing.T, free int64) (*world, *backuptest.Disk) {
	t.Helper()
	w := newWorld(t)
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	d := w.Cramped(free, func(c *backuptest.Config) { c.ReadyTime = readyTime })
	made := w.Request()
	made.Verify = false
	w.Backup(made)
	t.Cleanup(func() {
		clustertest.Exec(t, w.Cluster.URL("postgres"), `DELETE FROM ledger.operation`)
		if err := w.Agent.Copies.Sweep(context.Background()); err != nil {
			t.Error(err)
		}
		w.LeavesNothing()
	})
	return w, d
}

func (w *world) loading(n int, account id.AccountID) copies.Request {
	return copies.Request{
		OperationID: w.Numbered(n).OperationID, DatabaseID: backuptest.DatabaseID, Database: w.Name, Owner: "shop", Account: account,
		Source: command.Source{DatabaseID: backuptest.DatabaseID, Filename: backuptest.Filename},
	}
}

func (w *world) loads(t *testing.T, n int, account id.AccountID) {
	t.Helper()
	clustertest.Exec(t, w.Cluster.URL("postgres"), // or it would be nobody's
		fmt.Sprintf(`INSERT INTO ledger.operation (id, epoch) VALUES ('%s', 1)`, w.Numbered(n).OperationID))
	if _, err := w.Agent.Copies.Load(t.Context(), w.loading(n, account), backuptest.Unseen); err != nil {
		t.Fatalf("%d of %s: %v", n, account, err)
	}
}

// isReady reports whether the copy of a load can still be switched to.
func (w *world) isReady(n int) (ready bool) {
	w.T.Helper()
	const query = `SELECT EXISTS (SELECT FROM ledger.copy WHERE operation_id = $1 AND ready IS NOT NULL AND until_closed)`
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(w.T)
	check.NoError(w.T, db.QueryRow(query, string(w.Numbered(n).OperationID)).Scan(&ready))
	return ready
}

// An account has a copy that is ready. Its next one would have more than half of the disk with it, and waits; the restore and the
// backup of others do not. In the end its own copy gives way to it.
func TestCopiesOfAnAccountWaitForEachOther(t *testing.T) {
	w, _ := restoring(t, backuptest.RoomFor)
	w.loads(t, 1, "hoarder")
	var waits backuptest.Stages
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Copies.Load(context.WithoutCancel(t.Context()), w.loading(2, "hoarder"), waits.Add)
		ended <- err
	}()
	for len(waits.Seen()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	w.loads(t, 3, "other")
	if _, err := w.Run(w.Agent, w.Numbered(4)); err != nil {
		t.Errorf("a backup of another account: %v", err)
	}
	for w.isReady(1) {
		time.Sleep(20 * time.Millisecond)
	}
	if err := w.Agent.Copies.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil || waits.Seen()[0] != copies.StageWaiting {
		t.Errorf("the second copy: %v, stages %v", err, waits.Seen())
	}
	if !w.isReady(2) || !w.isReady(3) {
		t.Errorf("ready are 2: %v, 3: %v", w.isReady(2), w.isReady(3))
	}
}

// A backup for which a copy that is ready leaves no room waits for it, and is not refused; the copy gives way, but not while its
// switch goes on.
func TestAReadyCopyGivesWayToABackup(t *testing.T) {
	w, d := restoring(t, backuptest.RoomFor)
	w.loads(t, 1, "idle")
	super := w.Cluster.URL("postgres")
	clustertest.Exec(t, super, `UPDATE ledger.copy SET reopen = true`)
	d.Free.Store(66 << 20) // the copy has the rest
	ended := make(chan error, 1)
	go func() {
		_, err := w.Agent.Run(context.WithoutCancel(t.Context()), w.Request(), backuptest.Unseen)
		ended <- err
	}()
	time.Sleep(readyTime + 500*time.Millisecond)
	if !w.isReady(1) {
		t.Error("a copy gave way while its switch went on")
	}
	clustertest.Exec(t, super, `UPDATE ledger.copy SET reopen = NULL`)
	for w.isReady(1) {
		select {
		case err := <-ended:
			t.Fatalf("the backup ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := w.Agent.Copies.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	d.Free.Store(backuptest.RoomFor)
	if err := <-ended; err != nil {
		t.Errorf("the backup: %v", err)
	}
}

// What would have room if a copy that is ready were gone is not refused.
func TestAReadyCopyIsRoomThatComesBack(t *testing.T) {
	w, d := restoring(t, backuptest.RoomFor)
	w.loads(t, 1, "idle")
	d.Free.Store(10 << 20)
	if err := w.Agent.Room.HasRoom(t.Context(), 2*(12<<20)); err != nil {
		t.Errorf("beside a copy: %v", err)
	}
	if err := w.Agent.Room.HasRoom(t.Context(), 2*(60<<20)); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("more than with the copy: %v", err)
	}
}
