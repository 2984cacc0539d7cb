package relocate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// A database that comes back is what it was, to the byte: its data, its roles with their passwords and limits, grants, settings
// and allowlist. While it is out of service nobody gets in: not whoever was in, nor another account's login that the owner has
// let in, nor an administrator.
func TestADatabaseComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	first, second := s.Opened(t, w.Additional(1, role.Custom)), s.Opened(t, w.Additional(2, role.ReadWrite))
	revoked := s.Opened(t, w.Additional(3, role.ReadOnly))
	s.Done(t, revoked.Shut(role.Revocation, 2))
	stranger := s.Made(t, database.SingleLogin)
	let := stranger.Present(database.OwnerLogin)
	let.Name = w.Name
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf(agenttest.Furnishing, w.Name, first.Username, second.Username)))(t)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf(`GRANT CONNECT ON DATABASE %[1]q TO %[2]q; GRANT SELECT ON things TO %[2]q;
		ALTER ROLE %[1]q IN DATABASE %[1]q SET search_path = "$user", public, "a, ""b""";
		ALTER ROLE %[1]q SET work_mem = '7MB'`, w.Name, stranger.Name)))(t)
	s.Done(t, w.Configure(3, command.Configure{Timeouts: agenttest.Standard, ReadOnly: true}))
	s.Done(t, w.Allowlist(4, "127.0.0.0/8", "::1/128"))
	s.NoOlderSessions(t, w)
	conns := s.Connected(t, w)
	theirs := s.Direct(t, w.Name, stranger.Name, let.Password)
	check.Must(theirs.Exec("BEGIN; SELECT * FROM things"))(t)
	entries := s.PoolerEntries(t)
	before, dump := s.CatalogOf(t, w), s.Dumped(t, w)

	operation := agenttest.NewUUID()
	s.Done(t, w.Isolating(operation))
	agenttest.Dead(t, "isolated", conns)
	agenttest.Refused(t, "whom the owner has let in", theirs, "SELECT 1")
	s.IsIsolated(t, "isolated", w)
	s.GetsInNowhere(t, "whom the owner has let in", let)
	let.Name = w.IsolatedName()
	s.GetsInNowhere(t, "whom the owner has let in, by its other name", let)
	agenttest.Refused(t, "an administrator", agenttest.Open(t, s.PG.URL(w.IsolatedName())), "SELECT 1")
	s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	s.Done(t, w.Isolating(operation))
	s.Done(t, w.Isolating(agenttest.NewUUID()))
	s.IsIsolated(t, "isolated again", w)

	back := agenttest.NewUUID()
	if got := agenttest.As[command.Rejoined](t, s.Done(t, w.Rejoining(back))); fmt.Sprint(got.DatabaseOID) != s.DatabaseOID(t, w) {
		t.Errorf("it came back as %d", got.DatabaseOID)
	}
	for _, l := range []agenttest.LoginOf{
		w.Present(database.OwnerLogin), w.Present(database.RuntimeLogin), w.Present(database.ReadonlyLogin), first, second,
	} {
		s.GetsIn(t, l.Username, l)
	}
	s.GetsInNowhere(t, "one that was revoked", revoked)
	s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "1min")
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.CatalogOf(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(strings.Split(dump, "\n"), strings.Split(s.Dumped(t, w), "\n")); diff != "" {
		t.Error(diff)
	}
	of := func(entries string) (lines []string) {
		for line := range strings.Lines(entries) {
			if strings.Contains(line, w.Name) {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(of(entries), of(s.PoolerEntries(t))); diff != "" {
		t.Error(diff)
	}
	s.Done(t, w.Isolating(operation)) // which was done, and is not done again
	agenttest.Works(t, "after a command of before", s.PooledOwner(t, w))
	s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(back))
}

// isolated takes a database out of service.
func isolated(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) (operation string) {
	t.Helper()
	operation = agenttest.NewUUID()
	s.Done(t, w.Isolating(operation))
	return operation
}

// The file of a deletion is its operation's until the database is isolated, and a backup like others from then on.
func TestTheFileOfADeletion(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	given := agenttest.NewUUID()
	s.WantBackup(t, w.LastBackup(given), command.BackupDone, "")
	s.Done(t, agenttest.Closing(given))
	s.NoFiles(t, w)
	s.RefusedFor(t, command.ReasonClosed, w.Isolating(given))
	s.GetsIn(t, "a deletion that was given up", w.Present(database.OwnerLogin))

	unlock, begun := s.LockThings(t, w), agenttest.NewUUID()
	s.Done(t, w.LastBackup(begun))
	s.RefusedFor(t, command.ReasonBusy, w.Isolating(begun)) // which would keep what is not whole
	unlock()
	s.Done(t, agenttest.Closing(begun))

	operation := s.Deleted(t, w, 2)
	s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(operation))
	if n := s.One(t, "SELECT count(*) FROM ledger.job WHERE database_id = $1", w.ID); n != "0" {
		t.Errorf("%s jobs are left", n)
	}
	s.Done(t, w.Rejoining(agenttest.NewUUID()))
	from := agenttest.Told(agenttest.NewUUID(), 1, command.Load{
		DatabaseID: w.DatabaseID(), Compare: true,
		Source: command.Source{DatabaseID: w.DatabaseID(), Filename: backup.Filename(agenttest.LastName)},
	})
	if report := s.Loaded(t, from); report.State != command.LoadReady {
		t.Errorf("from the file: %+v", report)
	}
	s.Done(t, agenttest.Closing(from.OperationID))
}
