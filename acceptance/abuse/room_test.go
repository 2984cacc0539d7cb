package abuse_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/operation"
)

// needMuchRoom starts backups whose verifications together need more room than PostgreSQL's disk has: there is enough for one at
// a time. The first hangs in its copy, so that the second waits for room all along, and the third for one of the agent's slots.
// The bystander's backups have the other slots: they are small and pass those that wait.
func needMuchRoom(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const large, share = 3, jobs.DefaultSlots / 2
	all := m.hangingDatabases(t, "hanging-large", large)
	m.enlarge(t, all)
	m.hang(t, all[0])
	others := m.startBackups(t, all[1:])
	ledger := stacktest.Open(t, m.Server.URL(setup.MaintenanceDatabase))
	const query = `SELECT count(*) FROM ledger.job WHERE cut_short > 0` // being attempted
	for ctx, asked := soon(t), 0; asked < share; time.Sleep(50 * time.Millisecond) {
		noError(t, ledger.QueryRowContext(ctx, query).Scan(&asked))
	}
	// No more backups may be verified at a time than the disk has room for.
	return func(t *testing.T) {
		if copies := m.hangingCopies(t); copies != 1 {
			t.Errorf("%d copies are made at a time, and there is room for one", copies)
		}
		for _, waiting := range others {
			o := must(m.Operations.Get(soon(t), waiting.ID))(t)
			if o.Status != operation.Running || o.Stage != "queued" {
				t.Errorf("a backup that waits for room is %s (%s): %+v", o.Status, o.Stage, o.Error)
			}
		}
	}
}

// enlarge makes each database take two fifths of what is free on the disk: a copy needs half of that, and its dump a fifth. It
// adds a file of no rows and no blocks to the database's folder, for what is reserved follows from the sizes of the files.
func (m *mallory) enlarge(t *testing.T, databases []wire.CreatedDatabase) {
	t.Helper()
	const folder = `SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database WHERE datname = $1`
	var size int64
	for _, d := range databases {
		var path string
		noError(t, m.superuser(t).QueryRowContext(soon(t), folder, d.Name).Scan(&path))
		if size == 0 {
			var disk syscall.Statfs_t
			noError(t, syscall.Statfs(path, &disk))
			block := int64(disk.Bsize) //nolint:unconvert // not int64 on every system
			size = int64(disk.Bavail) * block / 5 * 2
		}
		file := must(os.Create(filepath.Join(path, "large")))(t)
		noError(t, file.Truncate(size))
		noError(t, file.Close())
	}
}
