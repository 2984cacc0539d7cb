package artifact_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// roomFor is enough for a small database's dump and copy, and not for two copies: each has a margin of 64 MiB.
const roomFor = 120 << 20

// disk is a pretended disk, on which all folders are.
type disk struct{ free atomic.Int64 }

func (d *disk) at(string) (store.Disk, error) { return store.Disk{ID: 7, Free: d.free.Load()}, nil }

// cramped is a world whose agent has a pretended disk and looks often.
func (w *world) cramped(free int64, change func(*artifact.Config)) *disk {
	w.t.Helper()
	d := &disk{}
	d.free.Store(free)
	w.files = w.open(store.Options{Reserve: 1, Disk: d.at})
	config := w.config()
	config.DataDir, config.LookPause = w.root, 20*time.Millisecond
	change(&config)
	w.agent = w.newAgent(config)
	return d
}

func asIs(*artifact.Config) {}

// numbered is the request of one of several operations.
func (w *world) numbered(n int) artifact.Request {
	req := w.request()
	req.OperationID = id.OperationID(fmt.Sprintf("22222222-2222-4222-8222-%012d", n))
	req.Filename = backup.Filename(fmt.Sprintf("20260301_1200%02d.sql.gz", n))
	return req
}

// holdFirst begins a backup that stands still once it has got its room, until the returned function is called.
func (w *world) holdFirst(req artifact.Request) (release func()) {
	held, reached := make(chan struct{}), make(chan struct{})
	var taken atomic.Bool
	w.agent.Crash = func(point string) {
		if point == "backup.reserved" && taken.CompareAndSwap(false, true) {
			close(reached)
			<-held
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.Run(context.Background(), req, unseen)
		ended <- err
	}()
	<-reached
	return func() {
		w.t.Helper()
		close(held)
		if err := <-ended; err != nil {
			w.t.Errorf("the first backup: %v", err)
		}
	}
}

// stages collects the stages of a backup.
type stages struct {
	mu   sync.Mutex
	list []string
}

func (s *stages) add(stage string, _ int, _ command.Bytes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || s.list[len(s.list)-1] != stage {
		s.list = append(s.list, stage)
	}
}

func (s *stages) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Four verifications at the same moment, with room for one and a half.
func TestBackupsThatDoNotFitTogetherWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.cramped(roomFor, asIs)
	var admitted, together atomic.Int64
	w.agent.Crash = func(point string) {
		switch point {
		case "backup.reserved":
			together.Store(max(together.Load(), admitted.Add(1)))
			time.Sleep(100 * time.Millisecond)
		case "backup.verify.dropped":
			admitted.Add(-1)
		}
	}
	var group sync.WaitGroup
	queued := make([]stages, 4)
	for n := range queued {
		group.Go(func() {
			result, err := w.agent.Run(t.Context(), w.numbered(n), queued[n].add)
			if err != nil || result.VerifiedAt == nil {
				t.Errorf("backup %d: %v, verified at %v", n, err, result.VerifiedAt)
			}
		})
	}
	group.Wait()
	waited := 0
	for n := range queued {
		if slices.Contains(queued[n].seen(), artifact.StageQueued) {
			waited++
		}
	}
	if together.Load() != 1 || waited != 3 {
		t.Errorf("%d had room together, %d waited", together.Load(), waited)
	}
	if n := w.reservations(); n != 0 {
		t.Errorf("%d reservations are left", n)
	}
}

func TestWaitingForRoomEnds(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.cramped(roomFor, func(c *artifact.Config) { c.RoomWait = 300 * time.Millisecond })
	release := w.holdFirst(w.numbered(1))
	var seen stages
	_, err := w.agent.Run(t.Context(), w.numbered(2), seen.add)
	if !fault.Has(err, fault.BackupStorageFull) || !strings.Contains(err.Error(), "had no room for another backup for 300ms") {
		t.Errorf("one that waited too long: %v", err)
	}
	if got := seen.seen(); !slices.Equal(got, []string{artifact.StageQueued}) {
		t.Errorf("its stages: %v", got)
	}
	if n := w.reservations(); n != 2 {
		t.Errorf("%d reservations, want those of the first backup's dump and copy", n)
	}
	small := w.numbered(3)
	small.Verify = false
	if _, err := w.agent.Run(t.Context(), small, unseen); err != nil {
		t.Errorf("a small one beside it: %v", err)
	}
	release()
}

func TestABackupThatWaitsForRoomCanBeCanceled(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.cramped(roomFor, asIs)
	release := w.holdFirst(w.numbered(1))
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	_, err := w.agent.Run(ctx, w.numbered(2), func(string, int, command.Bytes) { cancel() })
	if err == nil || fault.Has(err, fault.BackupStorageFull) || time.Since(began) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if n := w.reservations(); n != 2 {
		t.Errorf("%d reservations, want those of the first backup", n)
	}
	release()
}

// What does not fit even alone is refused at once, and said before anything is queued.
func TestRoomIsRefusedOnlyWhereItWouldNotDoAlone(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	d := w.cramped(roomFor, asIs)
	release := w.holdFirst(w.numbered(1))
	if err := w.agent.Room(t.Context(), 2*roomFor-10); err != nil {
		t.Errorf("a dump that fits alone: %v", err)
	}
	if err := w.agent.Room(t.Context(), 2*roomFor+10); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("a dump that does not: %v", err)
	}
	super := w.Cluster.URL("postgres")
	clustertest.Exec(t, super, `UPDATE ledger.reservation SET used = 50000000 WHERE purpose = 'copy'`)
	if err := w.agent.Room(t.Context(), 2*roomFor+2*49000000); err != nil {
		t.Errorf("a dump that fits once the copy is gone: %v", err)
	}
	release()
	d.free.Store(roomFor / 2)
	never := func(stage string, _ int, _ command.Bytes) { t.Errorf("stage %s", stage) }
	if _, err := w.agent.Run(t.Context(), w.numbered(2), never); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("a copy without room: %v", err)
	}
}

// A removal that fails, say because PostgreSQL is just being restarted, must not hold room until the agent starts again.
func TestAReservationOfNobodyHoldsNoRoom(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	w.cramped(roomFor, func(c *artifact.Config) { c.RoomWait = time.Second })
	clustertest.Exec(t, w.Cluster.URL("postgres"), `INSERT INTO ledger.reservation (operation_id, purpose, disk, bytes, waiting)
		VALUES ('gone', 'copy', 7, 100000000, false)`)
	if _, err := w.run(w.agent, w.request()); err != nil {
		t.Error(err)
	}
	if n := w.reservations(); n != 0 {
		t.Errorf("%d reservations", n)
	}
}

// An agent that resumes a verification needs room for its copy alone.
func TestAResumedVerificationNeedsRoomForItsCopy(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	d := w.cramped(roomFor, asIs)
	dumped := w.request()
	dumped.Verify = false
	if _, err := w.run(w.agent, dumped); err != nil {
		t.Fatal(err)
	}
	d.free.Store(0)
	if _, err := w.run(w.agent, w.request()); !fault.Has(err, fault.BackupStorageFull) {
		t.Errorf("without room: %v", err)
	}
	d.free.Store(roomFor)
	clustertest.Exec(t, w.Cluster.URL("postgres"), fmt.Sprintf( // PostgreSQL was down when the dump ended
		`INSERT INTO ledger.reservation (operation_id, purpose, disk, bytes, waiting) VALUES ('%s', 'dump', 7, %d, false)`,
		operationID, int64(1)<<40))
	var purposes string
	w.agent.Crash = func(point string) {
		if point == "backup.reserved" {
			db := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t)
			if err := db.QueryRow(`SELECT string_agg(purpose, ' ') FROM ledger.reservation`).Scan(&purposes); err != nil {
				t.Error(err)
			}
		}
	}
	if result, err := w.run(w.agent, w.request()); err != nil || result.VerifiedAt == nil || purposes != "copy" {
		t.Errorf("with room: %v, reserved for %q", err, purposes)
	}
}

// Two decisions at the same moment, of an agent and its successor too, must not both see the same room.
func TestOneDecidesAtATime(t *testing.T) {
	w := newWorld(t)
	w.load(`CREATE TABLE t AS SELECT generate_series(1, 10) AS n`)
	tx, err := clustertest.Database{URL: w.Cluster.URL("postgres")}.Open(t).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // it only holds the lock
	if _, err := tx.Exec(`SELECT pg_advisory_xact_lock(7450018)`); err != nil {
		t.Fatal(err)
	}
	var admitted atomic.Bool
	w.agent.Crash = func(string) { admitted.Store(true) }
	ended := make(chan error, 1)
	go func() {
		_, err := w.agent.Run(context.Background(), w.request(), unseen)
		ended <- err
	}()
	time.Sleep(300 * time.Millisecond)
	if admitted.Load() {
		t.Error("it was admitted while another decided")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
