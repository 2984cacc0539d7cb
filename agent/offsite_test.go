package agent_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/objectstore"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/blob"
	"github.com/pgherd/pgherd/agent/blob/s3"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
)

// offsite is an agent whose backups are in an object store.
type offsite struct {
	*agenttest.Stack
	store *objectstore.Server
	blobs blob.Store
	agent *agent.Agent
}

func newOffsite(t *testing.T) *offsite {
	t.Helper()
	x := &offsite{Stack: agenttest.Own(t), store: objectstore.Start(t)}
	config := x.store.Config("server-1")
	config.Stall = time.Second
	x.blobs = check.Must(s3.New(config))(t)
	x.Config.Blobs, x.Config.Jobs = x.blobs, 2
	x.agent, _, _ = x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	return x
}

func (x *offsite) count(t testing.TB, w agenttest.Wanted) int {
	t.Helper()
	list, _, err := x.blobs.List(t.Context(), w.ID+"/", "", blob.ListLimit)
	check.NoError(t, err)
	return len(list)
}

// A backup in an object store is verified, downloaded, restored and deleted as one in a folder, a purge leaves nothing of it, and
// this machine has no file of it once it is stored.
func TestBackupsInAnObjectStore(t *testing.T) {
	t.Parallel()
	x := newOffsite(t)
	w := x.FilledDatabase(t)
	report := x.BackedUp(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, true))
	if report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Fatalf("%+v", report)
	}
	x.NoFiles(t, w)
	if n := x.count(t, w); n != 5 {
		t.Errorf("%d blobs", n)
	}
	status, text, err := x.Request(http.MethodGet, agenttest.BackupPath(w, agenttest.BackupName), nil)
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); err != nil || status != http.StatusOK || sum != report.ChecksumSHA256 {
		t.Errorf("the download: %d, %s, %v", status, sum, err)
	}
	operation := agenttest.NewUUID()
	check.Must(x.Owner(t, w).Exec("DELETE FROM things"))(t)
	x.loaded(t, w, operation)
	x.DoneInTheEnd(t, w.Switching(operation))
	var n int
	check.NoError(t, x.Owner(t, w).QueryRow("SELECT count(*) FROM things").Scan(&n))
	if n != 2000 {
		t.Errorf("%d rows after the restore", n)
	}
	deleteFile(t, x.Stack, w)
	if n := x.count(t, w); n != 0 {
		t.Errorf("%d blobs after the deletion", n)
	}
	x.BackedUp(t, w.Backup(agenttest.NewUUID(), agenttest.BackupName, false))
	isolating := agenttest.NewUUID()
	x.Done(t, w.Isolating(isolating))
	x.Done(t, w.Purging(agenttest.NewUUID()))
	if n := x.count(t, w); n != 0 {
		t.Errorf("%d blobs after the purge", n)
	}
}

// loaded waits until the copy of a restore is ready.
func (x *offsite) loaded(t testing.TB, w agenttest.Wanted, operation string) {
	t.Helper()
	report := agenttest.Outcome(t, x.Stack, w.Load(operation), func(r command.LoadReport) bool {
		return r.State != command.LoadRunning
	})
	if report.State != command.LoadReady {
		t.Fatalf("%+v", report)
	}
}

// stage is how far a backup is.
func (x *offsite) stage(t testing.TB, c protocol.Command) string {
	t.Helper()
	var report command.BackupReport
	check.NoError(t, json.Unmarshal(x.Done(t, c), &report))
	return report.Stage
}

// While the store is away, backups wait without a place among the jobs, and health says why; when it is back, they are stored and
// verified. A restore is refused meanwhile, and works then. What needs no backup is done all the same.
func TestAnObjectStoreThatIsAway(t *testing.T) {
	t.Parallel()
	for what, happens := range map[string]struct {
		away, back func(*objectstore.Server, testing.TB)
	}{
		"killed": {func(s *objectstore.Server, _ testing.TB) { s.Kill() }, (*objectstore.Server).Run},
		"frozen": {(*objectstore.Server).Freeze, (*objectstore.Server).Thaw},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x := newOffsite(t)
			first, second := x.FilledDatabase(t), x.Made(t, database.SingleLogin)
			x.WantBackup(t, second.Backup(agenttest.NewUUID(), agenttest.BackupName, true), command.BackupDone, "")
			one := first.Backup(agenttest.NewUUID(), agenttest.BackupName, true)
			other := second.Backup(agenttest.NewUUID(), "20260301_120001.sql.gz", true)
			restore := agenttest.NewUUID()
			unlock := x.LockThings(t, first)
			x.Done(t, one)
			check.Eventually(t, "the dump does not wait for the lock", func() bool {
				return x.One(t, "SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"
			})
			happens.away(x.store, t)
			x.Done(t, other)
			unlock()
			for _, c := range []protocol.Command{one, other} {
				check.Eventually(t, "a backup does not wait", func() bool { return x.stage(t, c) == "storing" })
			}
			x.RefusedFor(t, command.ReasonStorageAway, second.Load(restore))
			check.Eventually(t, "what waits has a place", func() bool {
				running, waiting := x.agent.JobCount()
				return running == 0 && waiting == 0
			})
			x.clonedAndProved(t, second)
			spooled := check.Must(filepath.Glob(filepath.Join(x.Config.BackupDir, "spool", "*")))(t)
			if len(spooled) == 0 {
				t.Error("nothing is in the spool")
			}
			happens.back(x.store, t)
			for _, c := range []struct {
				w agenttest.Wanted
				n int
			}{{first, 5}, {second, 10}} {
				check.Eventually(t, "the backups are not stored", func() bool { return x.count(t, c.w) == c.n })
			}
			x.WantBackup(t, one, command.BackupDone, "")
			x.WantBackup(t, other, command.BackupDone, "")
			x.loaded(t, second, restore)
			if left := check.Must(os.ReadDir(filepath.Join(x.Config.BackupDir, "spool")))(t); len(left) != 0 {
				t.Errorf("the spool has %d files", len(left))
			}
		})
	}
}

// clonedAndProved demands that a database can be cloned as it is, and an extension be tried.
func (x *offsite) clonedAndProved(t testing.TB, source agenttest.Wanted) {
	t.Helper()
	c := cloningOf(x.Stack, source)
	c.loaded(t)
	c.switched(t)
	trying := agenttest.Told(agenttest.NewUUID(), 1, command.QualifyExtension{
		Extension: extension.Citext, Version: agenttest.Supported(extension.Citext),
	})
	proof := agenttest.Outcome(t, x.Stack, trying, func(p command.ExtensionProof) bool {
		return p.State != command.ExtensionRunning
	})
	if !proof.Qualified {
		t.Errorf("%+v", proof)
	}
}
