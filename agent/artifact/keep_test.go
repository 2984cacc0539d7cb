package artifact_test

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/diskroom"
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
	w := newOwnWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	refused := func(when string) {
		t.Helper()
		if err := w.agent.Keep(t.Context(), upload("another", 2)); !fault.Has(err, fault.BackupStorageFull) {
			t.Errorf("%s: another is answered %v", when, err)
		}
		if _, err := w.run(w.agent, w.request()); !fault.Has(err, fault.BackupStorageFull) {
			t.Errorf("%s: a backup is answered %v", when, err)
		}
	}
	quick := func(c *artifact.Config) { c.RoomWait = 100 * time.Millisecond }
	w.cramped(roomFor, quick)
	if err := w.agent.Keep(t.Context(), upload("mine", roomFor/2-1)); err != nil {
		t.Fatal(err)
	}
	refused("beside it")
	clustertest.Exec(t, w.Cluster.URL("postgres"), `UPDATE ledger.reservation SET disk = 99`) // as after one of the machine
	w.cramped(roomFor, quick)
	refused("after a restart of the agent")
	if err := w.Cluster.Restart(t.Context(), cluster.Immediate); err != nil {
		t.Fatal(err)
	}
	d := w.cramped(roomFor, quick)
	refused("after a crash of PostgreSQL")

	written := upload("mine", roomFor/2-1)
	written.Used = roomFor / 4
	d.free.Store(roomFor - written.Used)
	if err := w.agent.Keep(t.Context(), written); err != nil {
		t.Errorf("half of it is written: %v", err)
	}
	refused("when half of it is written")
	written.Bytes = roomFor + 1
	if err := w.agent.Keep(t.Context(), written); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("more than there is: %v", err)
	}
	refused("when more was asked for in vain")
	d.free.Store(roomFor)
	for range 2 {
		if err := w.agent.Release(t.Context(), "mine"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.run(w.agent, w.request()); err != nil {
		t.Errorf("when it was released: %v", err)
	}
}

// Room for which nobody comes back is free again at its time, and its row is swept.
func TestKeptRoomEndsAtItsTime(t *testing.T) {
	w := newWorld(t)
	w.cramped(roomFor, asIs)
	mine := upload("mine", roomFor/2-1)
	mine.Until = time.Now().Add(300 * time.Millisecond)
	if err := w.agent.Keep(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.Keep(t.Context(), upload("another", 2)); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("before its time: %v", err)
	}
	time.Sleep(time.Until(mine.Until))
	if err := w.agent.Sweep(t.Context()); err != nil || w.reservations() != 0 {
		t.Errorf("%d reservations after a sweep, %v", w.reservations(), err)
	}
	mine.Until = time.Now().Add(time.Hour)
	if err := w.agent.Keep(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	mine.Until = time.Now() // nobody wants it any more
	if err := w.agent.Keep(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := w.agent.Keep(t.Context(), upload("another", 2)); err != nil {
		t.Errorf("after its time: %v", err)
	}
	if err := w.agent.Release(t.Context(), "another"); err != nil {
		t.Error(err)
	}
}
