package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// isPurged demands that nothing of a database is left, but what operations were told, which is forgotten with them.
func (s *stack) isPurged(t testing.TB, w wanted) {
	t.Helper()
	s.noTrace(t, w)
	if _, err := os.Stat(filepath.Join(s.config.BackupDir, w.id)); !os.IsNotExist(err) {
		t.Errorf("the folder of its backups: %v", err)
	}
	check.Eventually(t, "something of it is left", func() bool {
		return s.one(t, `SELECT (SELECT count(*) FROM ledger.database WHERE id = $1)
			+ (SELECT count(*) FROM ledger.role WHERE database_id = $1)
			+ (SELECT count(*) FROM ledger.copy WHERE database_id = $1) + (SELECT count(*) FROM ledger.job WHERE database_id = $1)
			+ (SELECT count(*) FROM ledger.generation WHERE resource LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM ledger.command WHERE operation_id = '' AND resource LIKE '%' || $1 || '%')
			+ (SELECT count(*) FROM pooler.gate WHERE database = $2) + (SELECT count(*) FROM pooler.shut WHERE database = $2)
			+ (SELECT count(*) FROM pg_database WHERE datname LIKE '%' || $3)
			+ (SELECT count(*) FROM pg_roles WHERE rolname LIKE '%' || $3 || '%')
			+ (SELECT count(*) FROM pg_ls_dir($4, true, false) f WHERE f LIKE '%' || $1 || '%')`,
			w.id, w.name, compact(w.id), filepath.Join(s.config.BackupDir, "uploads")) == "0"
	})
}

// A purge leaves nothing: neither what was made in the database's life, nor what others have of its roles, which it does not wait
// for. The name is free.
func TestAPurgeLeavesNothing(t *testing.T) {
	t.Parallel()
	s, w, l := roleStack(t, role.ReadWrite)
	s.saved(t, w)
	s.sent(t, w, []byte("not all of it"))
	s.done(t, w.configure(3, command.Configure{Timeouts: standard, Closed: true}))
	s.done(t, w.allowlist(4, "127.0.0.0/8"))
	restoring := newUUID()
	s.ready(t, w, restoring)
	stranger := s.made(t, database.SingleLogin)
	theirs := s.owner(t, stranger)
	check.Must(theirs.Exec(fmt.Sprintf(`GRANT CONNECT, CREATE ON DATABASE %q TO %q; CREATE TABLE bait ();
		GRANT SELECT ON bait TO %[2]q, %[3]s; GRANT USAGE ON SCHEMA public TO %[2]q`, stranger.name, w.name, l.username)))(t)
	s.done(t, w.configure(4, command.Configure{Timeouts: standard}))
	check.Must(s.direct(t, stranger.name, w.name, w.passwords[database.OwnerLogin]).Exec("CREATE SCHEMA owned CREATE TABLE t ()"))(t)
	s.refusedFor(t, command.ReasonFailed, w.purging(newUUID()))
	s.getsIn(t, "in service, whatever was sent", w.present(database.OwnerLogin))

	s.deleted(t, w, 5)
	folder := filepath.Join(s.config.BackupDir, w.id)
	check.NoError(t, os.WriteFile(filepath.Join(folder, "20260303_000000.sql.gz.someone.partial"), []byte("x"), 0o600))
	open := check.Must(theirs.Begin())(t)
	check.Must(open.Exec(fmt.Sprintf("GRANT SELECT ON bait TO %q", w.names().Runtime)))(t)
	operation := newUUID()
	s.done(t, w.purging(operation))
	s.isPurged(t, w)
	check.NoError(t, open.Rollback())
	s.refusedFor(t, command.ReasonCompleted, closing(operation))
	s.done(t, w.purging(operation))
	s.done(t, w.purging(newUUID()))
	s.done(t, closing(restoring))
	s.isPurged(t, w)
	if n := s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_' AND rolcanlogin"); n != "0" {
		t.Errorf("%s dead roles can log in", n)
	}
	check.Must(theirs.Exec("DROP TABLE bait"))(t)
	check.Must(s.superIn(t, stranger).Exec("DROP SCHEMA owned CASCADE"))(t)

	again := want(database.Managed)
	again.name = w.name
	s.done(t, again.create())
	s.getsIn(t, "of the same name", again.present(database.OwnerLogin))
	s.getsInNowhere(t, "with the password of before", w.present(database.OwnerLogin))
}

// What is left of a database is removed too: one that an administrator has dropped, one that was never made whole, and the files
// of one that the server does not know.
func TestAPurgeOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	agent := s.child(t, "")
	gone, half, unknown := s.filledDatabase(t), want(database.Managed), want(database.Managed)
	s.saved(t, gone)
	check.Must(s.super.Exec(fmt.Sprintf("DROP DATABASE %q WITH (FORCE)", gone.name)))(t)
	s.refusedFor(t, command.ReasonNotFound, gone.isolating(newUUID()))
	s.done(t, gone.purging(newUUID()))
	s.isPurged(t, gone)

	agent.kill()
	s.crashAt(t, "agent.create.rights", half.create())
	s.child(t, "")
	s.done(t, half.purging(newUUID()))
	s.isPurged(t, half)
	s.refusedFor(t, command.ReasonClosed, half.create())
	s.done(t, closing(half.operation))

	folder := filepath.Join(s.config.BackupDir, unknown.id)
	check.NoError(t, os.MkdirAll(folder, 0o700))
	check.NoError(t, os.WriteFile(filepath.Join(folder, backupName), []byte("x"), 0o600))
	s.done(t, unknown.purging(newUUID()))
	s.isPurged(t, unknown)
	s.noOrphans(t)
}

// A database that stands under another name than the agent has given it is not dropped.
func TestAPurgeDropsNothingElse(t *testing.T) {
	t.Parallel()
	s := realStack(t)
	w := s.made(t, database.SingleLogin)
	s.isolated(t, w)
	rename := func(from, to string) {
		t.Helper()
		check.Must(s.super.Exec(fmt.Sprintf("ALTER DATABASE %q RENAME TO %q", from, to)))(t)
	}
	rename(w.isolatedName(), "somebody's")
	s.refusedFor(t, command.ReasonFailed, w.purging(newUUID()))
	s.refusedFor(t, command.ReasonFailed, w.rejoining(newUUID()))
	rename("somebody's", w.isolatedName())
	s.done(t, w.purging(newUUID()))
	s.isPurged(t, w)
}

// The ledger forgets neither an isolated database nor the operation that made it, and its file goes with it alone.
func TestAnIsolatedDatabaseIsNotPruned(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	agent := s.child(t, "")
	w, given := s.filledDatabase(t), s.filledDatabase(t)
	abandoned := newUUID()
	s.wantBackup(t, given.lastBackup(abandoned), command.BackupDone, "")
	operation := s.deleted(t, w, 2)
	agent.kill()
	check.Must(s.super.Exec("UPDATE ledger.operation SET spoken_at = now() - interval '60 days'"))(t)
	s.child(t, "")
	check.Eventually(t, "the ledger is not pruned", func() bool {
		return s.one(t, "SELECT count(*) FROM ledger.operation WHERE id = $1", operation) == "0"
	})
	check.Eventually(t, "the file of a deletion that nobody speaks of is left", func() bool {
		found, err := filepath.Glob(filepath.Join(s.config.BackupDir, given.id, "*"))
		return err == nil && len(found) == 0
	})
	s.done(t, closing(operation))
	s.refusedFor(t, command.ReasonCompleted, closing(w.operation))
	s.isIsolated(t, "two months later", w)
	check.Must(os.Stat(filepath.Join(s.config.BackupDir, w.id, lastName)))(t)
	s.done(t, w.rejoining(newUUID()))
	s.getsIn(t, "two months later", w.present(database.OwnerLogin))
	s.getsIn(t, "one that was not deleted", given.present(database.OwnerLogin))
}
