package relocate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// A purge leaves nothing: neither what was made in the database's life, nor what others have of its roles, which it does not wait
// for. The name is free.
func TestAPurgeLeavesNothing(t *testing.T) {
	t.Parallel()
	s, w, l := agenttest.RoleStack(t, role.ReadWrite)
	s.Saved(t, w)
	s.Sent(t, w, []byte("not all of it"))
	s.Done(t, w.Configure(3, command.Configure{Timeouts: agenttest.Standard, Closed: true}))
	s.Done(t, w.Allowlist(4, "127.0.0.0/8"))
	restoring := agenttest.NewUUID()
	s.Ready(t, w, restoring)
	stranger := s.Made(t, database.SingleLogin)
	theirs := s.Owner(t, stranger)
	check.Must(theirs.Exec(fmt.Sprintf(`GRANT CONNECT, CREATE ON DATABASE %q TO %q; CREATE TABLE bait ();
		GRANT SELECT ON bait TO %[2]q, %[3]s; GRANT USAGE ON SCHEMA public TO %[2]q`, stranger.Name, w.Name, l.Username)))(t)
	s.Done(t, w.Configure(4, command.Configure{Timeouts: agenttest.Standard}))
	check.Must(s.Direct(t, stranger.Name, w.Name, w.Passwords[database.OwnerLogin]).Exec("CREATE SCHEMA owned CREATE TABLE t ()"))(t)
	s.RefusedFor(t, command.ReasonInService, w.Purging(agenttest.NewUUID()))
	s.GetsIn(t, "in service, whatever was sent", w.Present(database.OwnerLogin))

	s.Deleted(t, w, 5)
	folder := filepath.Join(s.Config.BackupDir, w.ID)
	check.NoError(t, os.WriteFile(filepath.Join(folder, "20260303_000000.someone.data"), []byte("x"), 0o600))
	open := check.Must(theirs.Begin())(t)
	check.Must(open.Exec(fmt.Sprintf("GRANT SELECT ON bait TO %q", w.Names().Runtime)))(t)
	operation := agenttest.NewUUID()
	s.Done(t, w.Purging(operation))
	s.IsPurged(t, w)
	check.NoError(t, open.Rollback())
	s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	s.Done(t, w.Purging(operation))
	s.Done(t, w.Purging(agenttest.NewUUID()))
	s.Done(t, agenttest.Closing(restoring))
	s.IsPurged(t, w)
	if n := s.One(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_' AND rolcanlogin"); n != "0" {
		t.Errorf("%s dead roles can log in", n)
	}
	check.Must(theirs.Exec("DROP TABLE bait"))(t)
	check.Must(s.SuperIn(t, stranger).Exec("DROP SCHEMA owned CASCADE"))(t)

	again := agenttest.Want(database.Managed)
	again.Name = w.Name
	s.Done(t, again.Create())
	s.GetsIn(t, "of the same name", again.Present(database.OwnerLogin))
	s.GetsInNowhere(t, "with the password of before", w.Present(database.OwnerLogin))
}

// What is left of a database is removed too: one that an administrator has dropped, one that was never made whole, and the files
// of one that the server does not know.
func TestAPurgeOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	agent := s.Child(t, "")
	gone, half, unknown := s.FilledDatabase(t), agenttest.Want(database.Managed), agenttest.Want(database.Managed)
	s.Saved(t, gone)
	check.Must(s.Super.Exec(fmt.Sprintf("DROP DATABASE %q WITH (FORCE)", gone.Name)))(t)
	s.RefusedFor(t, command.ReasonNotFound, gone.Isolating(agenttest.NewUUID()))
	check.Must(s.Super.Exec(fmt.Sprintf("CREATE DATABASE %q", gone.Name)))(t) // from a dump, in the place of the one that was lost
	s.RefusedFor(t, command.ReasonInService, gone.Purging(agenttest.NewUUID()))
	s.Keeps(t, gone, agenttest.BackupName)
	check.Must(s.Super.Exec(fmt.Sprintf("DROP DATABASE %q", gone.Name)))(t)
	s.Done(t, gone.Purging(agenttest.NewUUID()))
	s.IsPurged(t, gone)

	agent.Kill()
	s.CrashAt(t, "agent.create.rights", half.Create())
	s.Child(t, "")
	s.Done(t, half.Purging(agenttest.NewUUID()))
	s.IsPurged(t, half)
	s.RefusedFor(t, command.ReasonClosed, half.Create())
	s.Done(t, agenttest.Closing(half.Operation))

	folder := filepath.Join(s.Config.BackupDir, unknown.ID)
	check.NoError(t, os.MkdirAll(folder, 0o700))
	check.NoError(t, os.WriteFile(filepath.Join(folder, agenttest.BackupName), []byte("x"), 0o600))
	s.Done(t, unknown.Purging(agenttest.NewUUID()))
	s.IsPurged(t, unknown)
	s.NoOrphans(t)
}

// A database that stands under another name than the agent has given it is not dropped.
func TestAPurgeDropsNothingElse(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.Made(t, database.SingleLogin)
	isolated(t, s, w)
	rename := func(from, to string) {
		t.Helper()
		check.Must(s.Super.Exec(fmt.Sprintf("ALTER DATABASE %q RENAME TO %q", from, to)))(t)
	}
	rename(w.IsolatedName(), "somebody's")
	s.RefusedFor(t, command.ReasonFailed, w.Purging(agenttest.NewUUID()))
	s.RefusedFor(t, command.ReasonFailed, w.Rejoining(agenttest.NewUUID()))
	rename("somebody's", w.IsolatedName())
	s.Done(t, w.Purging(agenttest.NewUUID()))
	s.IsPurged(t, w)
}

// The ledger forgets neither an isolated database nor the operation that made it, and its file goes with it alone.
func TestAnIsolatedDatabaseIsNotPruned(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	agent := s.Child(t, "")
	w, given := s.FilledDatabase(t), s.FilledDatabase(t)
	abandoned := agenttest.NewUUID()
	s.WantBackup(t, given.LastBackup(abandoned), command.BackupDone, "")
	operation := s.Deleted(t, w, 2)
	agent.Kill()
	check.Must(s.Super.Exec("UPDATE ledger.operation SET spoken_at = now() - interval '60 days'"))(t)
	s.Child(t, "")
	check.Eventually(t, "the ledger is not pruned", func() bool {
		return s.One(t, "SELECT count(*) FROM ledger.operation WHERE id = $1", operation) == "0"
	})
	check.Eventually(t, "the file of a deletion that nobody speaks of is left", func() bool {
		found, err := filepath.Glob(filepath.Join(s.Config.BackupDir, given.ID, "*"))
		return err == nil && len(found) == 0
	})
	s.Done(t, agenttest.Closing(operation))
	s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(w.Operation))
	s.IsIsolated(t, "two months later", w)
	s.Keeps(t, w, agenttest.LastName)
	s.Done(t, w.Rejoining(agenttest.NewUUID()))
	s.GetsIn(t, "two months later", w.Present(database.OwnerLogin))
	s.GetsIn(t, "one that was not deleted", given.Present(database.OwnerLogin))
}
