package crash_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster"
)

const (
	load      = "CREATE TABLE item AS SELECT n, md5(n::text) AS word FROM generate_series(1, 5000) n"
	sumOfRows = "SELECT count(*) || ' ' || md5(string_agg(n || word, ',' ORDER BY n)) FROM item"
)

// newLoadedGuest is a guest with rows in its database.
func newLoadedGuest(t *testing.T, w *world, name string) guest {
	t.Helper()
	g := newGuest(t, w, name)
	must(g.conn.ExecContext(soon(t), load))(t)
	return g
}

// holdUp keeps every dump of the database waiting until release.
func (g guest) holdUp(t *testing.T) (release func()) {
	t.Helper()
	tx := must(g.conn.Begin())(t)
	must(tx.ExecContext(soon(t), "LOCK TABLE item IN ACCESS EXCLUSIVE MODE"))(t)
	return func() { noError(t, tx.Rollback()) }
}

// backUp asks for a backup. The answer may be lost.
func (g guest) backUp(t *testing.T, api *stack.Host) {
	t.Helper()
	_, err := g.user.at(api).Backups.Start(soon(t), g.db.ID)
	mayHaveFailed(t, err)
}

// startBackup asks for a backup and returns its operation.
func (g guest) startBackup(t *testing.T, api *stack.Host) wire.Operation {
	t.Helper()
	return must(g.user.at(api).Backups.Start(soon(t), g.db.ID))(t).Operation
}

func (g guest) operation(t *testing.T, api *stack.Host, of id.OperationID) wire.Operation {
	t.Helper()
	return must(g.user.at(api).Operations.Get(soon(t), of))(t)
}

// operations are those of the database, newest first.
func (g guest) operations(t *testing.T, api *stack.Host) []wire.Operation {
	t.Helper()
	return must(g.user.at(api).Operations.List(g.db.ID).Page(soon(t), apiclient.Page{}))(t).Data
}

// atWork waits until the agent works on a backup.
func (w *world) atWork(t *testing.T, o wire.Operation) {
	t.Helper()
	const query = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = $1)"
	eventually(t, "the agent works on the backup", func() (begun bool, why string) {
		err := w.server.QueryRowContext(t.Context(), query, "pgherd-backup-"+string(o.ID)).Scan(&begun)
		return begun, fmt.Sprint("no session of it ", err)
	})
}

func (g guest) backups(t *testing.T, api *stack.Host) []wire.Backup {
	t.Helper()
	return must(g.user.at(api).Backups.List(g.db.ID).Page(soon(t), apiclient.Page{}))(t).Data
}

// download opens a backup file, which is closed with the test.
func (g guest) download(t *testing.T, api *stack.Host, b wire.Backup) (*apiclient.Download, error) {
	t.Helper()
	file, err := g.user.at(api).Backups.Download(soon(t), g.db.ID, b.Filename)
	if err == nil {
		t.Cleanup(func() { _ = file.Close() }) // it was read
	}
	return file, err
}

// restores downloads a backup, restores it into a bare cluster with psql, and compares.
func (g guest) restores(t *testing.T, w *world, api *stack.Host, b wire.Backup) {
	t.Helper()
	file := must(g.download(t, api, b))(t)
	target := "restore_" + strings.ReplaceAll(g.db.Name, "-", "_")
	admin := stacktest.Open(t, w.Metadata.URL("postgres"))
	must(admin.ExecContext(soon(t), "CREATE DATABASE "+target+" TEMPLATE template0"))(t)
	noError(t, replay(soon(t), w, target, file))
	copied := must(sql.Open("postgres", w.Metadata.URL(target)))(t)
	var want, got string
	noError(t, g.conn.QueryRowContext(soon(t), sumOfRows).Scan(&want))
	if err := copied.QueryRowContext(soon(t), sumOfRows).Scan(&got); err != nil || got != want {
		t.Errorf("the restored rows are %s, want %s: %v", got, want, err)
	}
	noError(t, copied.Close())
	must(admin.ExecContext(soon(t), "DROP DATABASE "+target))(t)
}

// replay runs a backup file into a database of the cluster that has the metadata: it knows none of the roles.
func replay(ctx context.Context, w *world, target string, file io.Reader) error {
	text, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	psql := exec.CommandContext(ctx, w.PsqlPath(), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", os.DevNull)
	psql.Env = append(os.Environ(), "PGHOST="+w.Metadata.Host(), "PGPORT="+strconv.Itoa(w.Metadata.Port()),
		"PGUSER="+cluster.Superuser, "PGPASSWORD="+w.Metadata.Password(), "PGDATABASE="+target)
	psql.Stdin = text
	out, err := psql.CombinedOutput()
	if err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	_, err = io.Copy(io.Discard, text) // what psql left unread, to its checksum
	return err
}

// backupFlow makes a backup, which must come to be whatever happens.
type backupFlow struct {
	slow bool // the dump waits until whoever should die has died
	guest
	release func()
}

func (f *backupFlow) ready(t *testing.T, w *world) {
	f.guest = newLoadedGuest(t, w, "backup")
	f.release = func() {}
	if f.slow {
		f.release = f.holdUp(t)
	}
}

func (f *backupFlow) act(t *testing.T, w *world, api *stack.Host) {
	f.backUp(t, api)
	if f.slow {
		eventually(t, "the host dies", func() (bool, string) { return !w.batch.Running(), "it runs" })
		f.release()
	}
}

func (f *backupFlow) check(t *testing.T, w *world, api *stack.Host) {
	list := f.backups(t, api)
	if len(list) != 1 || list[0].VerifiedAt == nil {
		t.Fatalf("backups: %+v", list)
	}
	if all := f.operations(t, api); len(all) != 1 || all[0].Status != "succeeded" {
		t.Errorf("operations: %+v", all)
	}
	f.restores(t, w, api, list[0])
}

// cancelFlow cancels a backup while it is dumped.
type cancelFlow struct{ guest }

func (f *cancelFlow) ready(t *testing.T, w *world) { f.guest = newLoadedGuest(t, w, "cancel") }

func (f *cancelFlow) act(t *testing.T, w *world, api *stack.Host) {
	t.Cleanup(f.holdUp(t)) // to the end of the test: a canceled backup does not wait for its dump
	o := f.startBackup(t, api)
	w.atWork(t, o)
	must(f.user.at(api).Operations.Cancel(soon(t), o.ID))(t)
}

func (f *cancelFlow) check(t *testing.T, _ *world, api *stack.Host) {
	if all := f.operations(t, api); len(all) != 1 || all[0].Status != "canceled" {
		t.Errorf("operations: %+v", all)
	}
	if list := f.backups(t, api); len(list) != 0 {
		t.Errorf("backups: %+v", list)
	}
}

// eraseFlow deletes a backup, or lets it expire.
type eraseFlow struct {
	expire bool
	guest
	backup wire.Backup
}

func (f *eraseFlow) ready(t *testing.T, w *world) {
	f.guest = newLoadedGuest(t, w, "erase")
	f.startBackup(t, w.api)
	w.quiet(t)
	if f.backup = f.backups(t, w.api)[0]; f.expire { // the last one does not
		f.startBackup(t, w.api)
		w.quiet(t)
	}
}

func (f *eraseFlow) act(t *testing.T, w *world, api *stack.Host) {
	if f.expire {
		const query = "UPDATE backups SET expires_at = created_at WHERE database_id = $1 AND filename = $2"
		must(w.meta.ExecContext(soon(t), query, f.db.ID, f.backup.Filename))(t)
		return
	}
	mayHaveFailed(t, f.user.at(api).Backups.Delete(soon(t), f.db.ID, f.backup.Filename))
}

func (f *eraseFlow) check(t *testing.T, w *world, api *stack.Host) {
	if list := f.backups(t, api); len(list) != 0 && !f.expire || slices.ContainsFunc(list, func(b wire.Backup) bool {
		return b.Filename == f.backup.Filename
	}) {
		t.Errorf("backups: %+v", list)
	}
	_, err := f.download(t, api, f.backup)
	refused(t, "its download", err, fault.BackupNotFound)
	refused(t, "its deletion", f.user.at(api).Backups.Delete(soon(t), f.db.ID, f.backup.Filename), fault.BackupNotFound)
	left := must(filepath.Glob(filepath.Join(w.BlobDir(), string(f.db.ID), f.backup.Filename.Stem()+"*")))(t)
	if len(left) > 0 {
		t.Errorf("of the backup there are %q", left)
	}
	f.startBackup(t, api) // and a next one is possible
}

func backingUp() []killing {
	var cases []killing
	add := func(in part, what string, f func() flow, points ...string) {
		for _, p := range points {
			cases = append(cases, kill(in, what, f(), p))
		}
	}
	plain, cancel := func() flow { return &backupFlow{} }, func() flow { return &cancelFlow{} }
	add(inAPI, "backup", plain, work.Reserved(backups.Kind))
	add(inBatch, "backup", plain, around(backups.Kind, "backup")...)
	add(inBatch, "slow backup", func() flow { return &backupFlow{slow: true} }, work.After(backups.Kind, "backup"))
	add(inBatch, "cancel", cancel, around(backups.Kind, "close")...)
	add(inAPI, "delete", func() flow { return &eraseFlow{} }, backups.CrashDoomed, backups.CrashErased)
	add(inBatch, "expire", func() flow { return &eraseFlow{expire: true} }, backups.CrashErased)
	add(inAgent, "backup", plain, crash.BackupAdmitted, crash.BackupStarted, crash.BackupFinished, crash.BackupReply)
	for _, p := range backup.CrashPoints {
		add(inAgent, "backup", plain, "agent."+p)
	}
	add(inAgent, "cancel", cancel, crash.CloseRecorded, crash.CloseEmptied, crash.CloseReply)
	return slices.Concat(cases, aroundCommits(inBatch, backups.Kind, "backup", plain, "succeeded"),
		aroundCommits(inBatch, backups.Kind, "cancel", cancel, "canceled"))
}

// losingTheStore are the cases of an object store that goes away.
func losingTheStore() (cases []killing) {
	for _, p := range backup.CrashPoints {
		for _, in := range []part{inStore, inFrozenStore} {
			cases = append(cases, kill(in, "backup, "+string(in), &backupFlow{}, "agent."+p))
		}
	}
	plain := &restorable{model: database.SingleLogin}
	for _, in := range []part{inStore, inFrozenStore} {
		cases = append(cases, kill(in, "restore, "+string(in), succeeds(plain)(), "agent.restore.reserved"))
	}
	return cases
}
