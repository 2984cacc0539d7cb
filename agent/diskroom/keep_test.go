package diskroom_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// upload is what is kept for an upload of so many bytes.
func upload(name diskroom.Claimant, bytes int64) diskroom.Kept {
	return diskroom.Kept{Claimant: name, Purpose: diskroom.Upload, Bytes: bytes, Until: time.Now().Add(time.Hour)}
}

// What is kept is nobody else's, over restarts of the agent and a crash of PostgreSQL, until it is released.
func TestKeptRoomOutlivesWhoeverAskedForIt(t *testing.T) {
	w := &world{backuptest.NewOwn(t)}
	w.Load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	refused := func(when string) {
		t.Helper()
		if err := w.Agent.Room.Keep(t.Context(), upload("another", 2)); !fault.Has(err, fault.BackupStorageFull) {
			t.Errorf("%s: another is answered %v", when, err)
		}
		if _, err := w.Run(w.Agent, w.Request()); !fault.Has(err, fault.BackupStorageFull) {
			t.Errorf("%s: a backup is answered %v", when, err)
		}
	}
	quick := func(c *backuptest.Config) { c.RoomWait = 100 * time.Millisecond }
	w.Cramped(backuptest.RoomFor, quick)
	check.NoError(t, w.Agent.Room.Keep(t.Context(), upload("mine", backuptest.RoomFor/2-1)))
	refused("beside it")
	w.Cramped(backuptest.RoomFor, quick)
	refused("after a restart of the agent")
	check.NoError(t, w.Cluster.Restart(t.Context(), cluster.Immediate))
	d := w.Cramped(backuptest.RoomFor, quick)
	refused("after a crash of PostgreSQL")

	written := upload("mine", backuptest.RoomFor/2-1)
	written.Used = backuptest.RoomFor / 4
	d.Free.Store(backuptest.RoomFor - written.Used)
	if err := w.Agent.Room.Keep(t.Context(), written); err != nil {
		t.Errorf("half of it is written: %v", err)
	}
	refused("when half of it is written")
	written.Bytes = backuptest.RoomFor + 1
	if err := w.Agent.Room.Keep(t.Context(), written); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("more than there is: %v", err)
	}
	refused("when more was asked for in vain")
	d.Free.Store(backuptest.RoomFor)
	for range 2 {
		check.NoError(t, w.Agent.Room.Release(t.Context(), "mine"))
	}
	if _, err := w.Run(w.Agent, w.Request()); err != nil {
		t.Errorf("when it was released: %v", err)
	}
}

// Room for which nobody comes back is free again at its time, and its row is swept.
func TestKeptRoomEndsAtItsTime(t *testing.T) {
	w := newWorld(t)
	w.Cramped(backuptest.RoomFor, backuptest.AsIs)
	mine := upload("mine", backuptest.RoomFor/2-1)
	mine.Until = time.Now().Add(300 * time.Millisecond)
	check.NoError(t, w.Agent.Room.Keep(t.Context(), mine))
	if err := w.Agent.Room.Keep(t.Context(), upload("another", 2)); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("before its time: %v", err)
	}
	time.Sleep(time.Until(mine.Until))
	check.NoError(t, w.Agent.Copies.Sweep(t.Context()))
	db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
	if n := check.Must(pg.One[int](t.Context(), db, `SELECT count(*) FROM ledger.reservation`))(t); n != 0 {
		t.Errorf("%d reservations after a sweep", n)
	}
	mine.Until = time.Now().Add(time.Hour)
	check.NoError(t, w.Agent.Room.Keep(t.Context(), mine))
	mine.Until = time.Now() // nobody wants it any more
	check.NoError(t, w.Agent.Room.Keep(t.Context(), mine))
	if err := w.Agent.Room.Keep(t.Context(), upload("another", 2)); err != nil {
		t.Errorf("after its time: %v", err)
	}
	if err := w.Agent.Room.Release(t.Context(), "another"); err != nil {
		t.Error(err)
	}
}
