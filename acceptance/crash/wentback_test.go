package crash_test

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/backupfiles"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/deletion"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
)

// metadataBackup copies the metadata, and returns what puts them back as they were. The hosts are stopped meanwhile.
func (w *world) metadataBackup(t *testing.T) (restore func(*testing.T)) {
	t.Helper()
	at := must(url.Parse(w.MetadataURL()))(t)
	name := pq.QuoteIdentifier(strings.TrimPrefix(at.Path, "/"))
	copied := func(t *testing.T, statements ...string) {
		t.Helper()
		noError(t, w.api.Stop(soon(t)))
		noError(t, w.batch.Stop(soon(t)))
		noError(t, w.meta.Close())
		admin := stacktest.Open(t, w.Metadata.URL("postgres"))
		for _, s := range append([]string{
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = " + pq.QuoteLiteral(strings.TrimPrefix(at.Path, "/")),
		}, statements...) {
			must(admin.ExecContext(soon(t), s))(t)
		}
		w.meta = stacktest.Open(t, w.MetadataURL())
		noError(t, w.api.Restart(soon(t), ""))
		noError(t, w.batch.Restart(soon(t), ""))
	}
	copied(t, "CREATE DATABASE earlier TEMPLATE "+name)
	return func(t *testing.T) {
		t.Helper()
		copied(t, "DROP DATABASE "+name+" WITH (FORCE)", "ALTER DATABASE earlier RENAME TO "+name)
	}
}

// files counts the backups of a database that are whole.
func (f *deletionFlow) files(t *testing.T, w *world) int {
	t.Helper()
	found := must(filepath.Glob(filepath.Join(w.BlobDir(), string(f.db.ID), "*"+backupfiles.Record)))(t)
	for _, record := range found {
		name := backup.Filename(strings.TrimSuffix(filepath.Base(record), backupfiles.Record) + backup.FileSuffix)
		must(must(w.BackupSet(soon(t), f.db.ID, name))(t).Read(backupfiles.Data))(t)
	}
	return len(found)
}

// The metadata are restored to before a recovery, and the time of the deletion ends: nothing is taken of the database that its
// owner works in, nor of its backups, until an operator has decided.
func TestMetadataOfBeforeARecovery(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	f := &purgeFlow{}
	f.deletionFlow.ready(t, w)
	f.backUpNow(t, w)
	f.gone(t, w)
	restore := w.metadataBackup(t)
	must(f.user.at(w.api).Databases.Recover(soon(t), f.db.ID))(t)
	w.quiet(t)
	f.asOwner(t, w, "UPDATE word SET said = 'new'")
	restore(t)

	f.over(t, w)
	wantServed := func() {
		t.Helper()
		f.says(t, w, "new")
		if n := f.files(t, w); n != 2 {
			t.Errorf("%d backups are left of two", n)
		}
	}
	var purge string
	refusedFor := func(cause string) {
		t.Helper()
		eventually(t, "the purge is refused: "+cause, func() (bool, string) {
			var why string
			err := w.meta.QueryRowContext(t.Context(), "SELECT id, error_text FROM operations WHERE database_id = $1 AND kind = 'purge'",
				f.db.ID).Scan(&purge, &why)
			return strings.Contains(why, cause), fmt.Sprint(why, err)
		})
		wantServed()
	}
	eventually(t, "the brake is on", func() (bool, string) {
		text := must(w.batch.Log())(t)
		return bytes.Contains(text, []byte("brake.on")), string(text)
	})
	wantServed()
	confirm := must(w.LaunchAdmin("", "metadata", "confirm", "--yes", "--reason", "it is so"))(t)
	noError(t, confirm.AwaitEnd(soon(t)))
	f.begun(t, w)
	refusedFor("in service")
	w.wantDifferences(t, []doctor.Code{doctor.PurgeRefused}, nil)

	for i, point := range []string{work.Before(deletion.KindPurge, "failing"), work.After(deletion.KindPurge, "failing")} {
		eventually(t, "the order dies at "+point, func() (bool, string) { // once no worker has the operation
			p := must(w.LaunchAdmin(point, "operation", "fail", "--operation", purge, "--reason", "the metadata went back", "--yes"))(t)
			noError(t, p.AwaitEnd(soon(t)))
			return p.Killed(), "a worker has it"
		})
		w.hurry(t)
		if i == 0 {
			wantServed()
		}
	}
	eventually(t, "the order is carried out", func() (bool, string) {
		var status string
		err := w.meta.QueryRowContext(t.Context(), "SELECT status FROM operations WHERE id = $1", purge).Scan(&status)
		return status == string(operation.Failed), fmt.Sprint(status, err)
	})
	if status := f.status(t, w.api); status != database.Active {
		t.Errorf("the database is %s", status)
	}
	wantServed()
	w.settled(t)
}

// The metadata are restored to before a deletion: the database can neither be used nor deleted, so that no purge follows, until
// the doctor has brought it back.
func TestMetadataOfBeforeADeletion(t *testing.T) {
	t.Parallel()
	w := startStack(t)
	f := &deletionFlow{end: operation.Succeeded}
	f.ready(t, w)
	restore := w.metadataBackup(t)
	f.gone(t, w)
	restore(t)

	for _, action := range []database.Event{database.Restart, database.Stop} {
		err := f.trySet(t, w.api, action)
		refused(t, string(action), err, fault.AgentError)
	}
	asked := must(f.user.at(w.api).Databases.Delete(soon(t), f.db.ID))(t)
	eventually(t, "the deletion fails", func() (bool, string) {
		o := f.operation(t, w.api, asked.Operation.ID)
		return o.Status == operation.Failed, fmt.Sprintf("%+v", o)
	})
	if status := f.status(t, w.api); status != database.Active {
		t.Errorf("the database is %s", status)
	}
	found, err := w.Doctor(soon(t), "--repair", "--patience", "100ms")
	noError(t, err)
	for _, d := range found {
		code := doctor.Code(d.Code)
		if mended := d.Outcome == "repaired"; mended != (code == doctor.ServiceDiffers) || !mended && code != doctor.FileUnknown {
			t.Errorf("the doctor finds %s: %s: %s", d.Code, d.Finding, d.Outcome)
		}
	}
	f.says(t, w, "old")
	f.gone(t, w)
}
