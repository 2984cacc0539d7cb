package offsite

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
)

// lost kills PostgreSQL and its agent amid writes, erases all that they had, and says how much of what was answered another
// server does not find in the archive.
func (w *world) lost(t *testing.T) {
	t.Helper()
	gone := command.Inherit{
		Installation: w.One(t, "SELECT id::text FROM ledger.installation"), Storage: "server-1", Key: agenttest.ArchiveKey,
	}
	data := w.One(t, "SHOW data_directory")
	db := w.clients[0]
	check.Must(db.Exec("CREATE TABLE answered (at timestamptz)"))(t)
	var last atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := db.Exec("INSERT INTO answered VALUES (clock_timestamp())"); err != nil {
				return
			}
			last.Store(time.Now().UnixNano())
			time.Sleep(5 * time.Millisecond)
		}
	}()
	time.Sleep(archiveTimeout + 7*time.Second) // in the middle between two segments
	check.NoError(t, w.PG.Kill())
	w.agent.Kill()
	<-ended
	check.NoError(t, os.RemoveAll(data))
	check.NoError(t, os.RemoveAll(w.Config.BackupDir))

	other := agenttest.Archived(t)
	bucket := w.store.Config("server-2")
	other.Config.Bucket = &bucket
	other.Started(t.Context(), t)
	other.StartBouncer(t.Context(), t)
	other.SendArchiveKey(t)
	again := w.small
	again.Operation = agenttest.NewUUID()
	other.Done(t, again.Create())
	patiently(t, "there is no window", func() bool { return !other.Window(t, again).Window.Empty() })
	path, body, err := protocol.WriteQuestion(gone)
	check.NoError(t, err)
	status, text, err := other.Request(gone.Route().Method, path, body)
	check.NoError(t, err)
	t.Log(status, string(text))
	began := time.Now()
	file := agenttest.Told(agenttest.NewUUID(), 1, command.Backup{
		DatabaseID: w.small.DatabaseID(), Filename: backup.Filename(agenttest.BackupName), Passing: true, Lost: gone.Installation,
		SizeBytes: 64 << 20,
	})
	var report command.BackupReport
	patiently(t, "the database of the lost server is not had back", func() bool {
		report = agenttest.As[command.BackupReport](t, other.Done(t, file))
		return report.State != command.BackupRunning
	})
	if report.State != command.BackupDone || report.AsOf == nil {
		t.Fatalf("%+v", report)
	}
	t.Logf("a database of the lost server: %s", since(began))
	w.hold(t, "lost with a server, of what was answered", time.Unix(0, last.Load()).Sub(*report.AsOf), lostWithin)
}
