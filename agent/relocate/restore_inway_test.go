package relocate_test

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// inWay has a switch refused while something is in its way, without a customer who notices, and carried out once that is gone.
func inWay(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, reason command.Reason, names string, away func()) {
	t.Helper()
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	held := check.Must(s.PooledOwner(t, w).Begin())(t)
	check.Must(held.Exec("SELECT 1"))(t)
	_, refusal, err := s.Send(w.Switching(operation))
	if err != nil || !strings.HasPrefix(refusal, string(reason)+":") || !strings.Contains(refusal, names) {
		t.Errorf("the switch was answered %q, %v; want %s with %q", refusal, err, reason, names)
	}
	check.Must(held.Exec("SELECT 1"))(t)
	check.NoError(t, held.Rollback())
	away()
	s.Done(t, w.Switching(operation))
	s.Discarded(t, w, operation)
	s.GetsIn(t, "afterwards", w.Present(database.OwnerLogin))
}

// What the agent cannot end is seen before customers are shut out: an administrator, a job of its own, and a security label of
// the database, which nobody but its provider can give to the copy.
func TestSwitchWaitsForWhatIsInItsWay(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	s.Saved(t, w)
	admin := s.SuperIn(t, w)
	agenttest.Works(t, "the administrator", admin)
	inWay(t, s, w, command.ReasonBusy, "still in it: "+s.One(t, "SELECT current_user"), func() { check.NoError(t, admin.Close()) })

	inWay(t, s, w, command.ReasonBusy, "pgherd_agent", jobIn(t, s, w))

	catalog := func(statement string) { // no provider is loaded here
		check.Must(s.Super.Exec("BEGIN; SET LOCAL allow_system_table_mods = on; " + statement + "; COMMIT"))(t)
	}
	oid := s.DatabaseOID(t, w)
	catalog("INSERT INTO pg_shseclabel VALUES (" + oid + ", 'pg_database'::regclass, 'someone', 'secret')")
	inWay(t, s, w, command.ReasonFailed, "security label", func() { catalog("DELETE FROM pg_shseclabel WHERE objoid = " + oid) })
}

// A database that is stopped stays so where a switch gives way.
func TestSwitchThatGivesWayOpensNothing(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	s.Saved(t, w)
	operation := agenttest.NewUUID()
	s.Ready(t, w, operation)
	s.Done(t, w.Access(1, false, true))
	admin := s.SuperIn(t, w)
	agenttest.Works(t, "the administrator", admin)
	s.RefusedFor(t, command.ReasonBusy, w.Switching(operation))
	s.GetsInNowhere(t, "while it is stopped", w.Present(database.OwnerLogin))
	check.NoError(t, admin.Close())
}

// jobIn has a backup at work in a database until it is let go on to its end.
func jobIn(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) (goOn func()) {
	t.Helper()
	unlock := s.LockThings(t, w)
	job := w.Backup(agenttest.NewUUID(), "20260102_000000.sql.gz", false)
	s.Done(t, job)
	const inside = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'pgherd-backup-%'"
	check.Eventually(t, "the job is not in the database", func() bool { return s.One(t, inside, w.Name) != "0" })
	return func() {
		unlock()
		s.WantBackup(t, job, command.BackupDone, "")
	}
}

// Without a comparison of rows only the schema of the copy is compared.
func TestLoadWithoutAComparison(t *testing.T) {
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	s.Saved(t, w)
	s.Rewritten(t, w, func(m *backup.Manifest, _, _ []byte) (data, sidecar []byte) {
		m.Contents.Rows["public.things"]++
		return nil, nil
	})
	of := func(compares bool) protocol.Command {
		return agenttest.Told(agenttest.NewUUID(), 1, command.Load{
			DatabaseID: w.DatabaseID(), Compare: compares,
			Source: command.Source{DatabaseID: w.DatabaseID(), Filename: agenttest.BackupName},
		})
	}
	if report := s.Loaded(t, of(true)); report.State != command.LoadFailed || report.Reason != command.ReasonInvalid {
		t.Errorf("compared: %+v", report)
	}
	trusted := of(false)
	if report := s.Loaded(t, trusted); report.State != command.LoadReady {
		t.Errorf("not compared: %+v", report)
	}
	s.Done(t, w.Switching(trusted.OperationID))
	s.Discarded(t, w, trusted.OperationID)
	s.Doctored(t, w, func(schema string) string { return schema + "\nCOMMENT ON TABLE public.things IS 'of another';\n" })
	if report := s.Loaded(t, of(false)); report.State != command.LoadFailed || report.Reason != command.ReasonInvalid {
		t.Errorf("another schema: %+v", report)
	}
}
