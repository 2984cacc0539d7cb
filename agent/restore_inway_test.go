package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// inWay has a switch refused while something is in its way, without a customer who notices, and carried out once that is gone.
func (s *stack) inWay(t *testing.T, w wanted, reason command.Reason, names string, away func()) {
	t.Helper()
	operation := newUUID()
	s.ready(t, w, operation)
	held := check.Must(s.pooledOwner(t, w).Begin())(t)
	check.Must(held.Exec("SELECT 1"))(t)
	_, refusal, err := s.send(w.switching(operation))
	if err != nil || !strings.HasPrefix(refusal, string(reason)+":") || !strings.Contains(refusal, names) {
		t.Errorf("the switch was answered %q, %v; want %s with %q", refusal, err, reason, names)
	}
	check.Must(held.Exec("SELECT 1"))(t)
	check.NoError(t, held.Rollback())
	away()
	s.done(t, w.switching(operation))
	s.discarded(t, w, operation)
	s.getsIn(t, "afterwards", w.present(database.OwnerLogin))
}

// What the agent cannot end is seen before customers are shut out: an administrator, a job of its own, and a security label of
// the database, which nobody but its provider can give to the copy.
func TestSwitchWaitsForWhatIsInItsWay(t *testing.T) {
	s := realStack(t)
	w := s.filledDatabase(t)
	s.saved(t, w)
	admin := s.superIn(t, w)
	works(t, "the administrator", admin)
	s.inWay(t, w, command.ReasonBusy, "still in it: "+s.one(t, "SELECT current_user"), func() { check.NoError(t, admin.Close()) })

	s.inWay(t, w, command.ReasonBusy, "pgherd_agent", s.jobIn(t, w))

	catalog := func(statement string) { // no provider is loaded here
		check.Must(s.super.Exec("BEGIN; SET LOCAL allow_system_table_mods = on; " + statement + "; COMMIT"))(t)
	}
	oid := s.databaseOID(t, w)
	catalog("INSERT INTO pg_shseclabel VALUES (" + oid + ", 'pg_database'::regclass, 'someone', 'secret')")
	s.inWay(t, w, command.ReasonFailed, "security label", func() { catalog("DELETE FROM pg_shseclabel WHERE objoid = " + oid) })
}

// jobIn has a backup at work in a database until it is let go on to its end.
func (s *stack) jobIn(t *testing.T, w wanted) (goOn func()) {
	t.Helper()
	unlock := s.lockThings(t, w)
	job := w.backup(newUUID(), "20260102_000000.sql.gz", false)
	s.done(t, job)
	const inside = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'pgherd-backup-%'"
	check.Eventually(t, "the job is not in the database", func() bool { return s.one(t, inside, w.name) != "0" })
	return func() {
		unlock()
		s.wantBackup(t, job, command.BackupDone, "")
	}
}

// Without a comparison of rows only the schema of the copy is compared.
func TestLoadWithoutAComparison(t *testing.T) {
	s := realStack(t)
	w := s.filledDatabase(t)
	s.saved(t, w)
	path := filepath.Join(s.config.BackupDir, w.id, strings.TrimSuffix(backupName, ".sql.gz")+".manifest.json")
	m := check.Must(backup.ParseManifest(check.Must(os.ReadFile(path))(t)))(t)
	m.Contents.Rows["public.things"]++
	check.NoError(t, os.WriteFile(path, check.Must(m.Encode())(t), 0o600))
	of := func(compares bool) protocol.Command {
		return told(newUUID(), 1, command.Load{
			DatabaseID: w.databaseID(), Compare: compares,
			Source: command.Source{DatabaseID: w.databaseID(), Filename: backupName},
		})
	}
	if report := s.loaded(t, of(true)); report.State != command.LoadFailed || report.Reason != command.ReasonInvalid {
		t.Errorf("compared: %+v", report)
	}
	trusted := of(false)
	if report := s.loaded(t, trusted); report.State != command.LoadReady {
		t.Errorf("not compared: %+v", report)
	}
	s.done(t, w.switching(trusted.OperationID))
	s.discarded(t, w, trusted.OperationID)
	s.doctored(t, w, func(schema string) string { return schema + "\nCOMMENT ON TABLE public.things IS 'of another';\n" })
	if report := s.loaded(t, of(false)); report.State != command.LoadFailed || report.Reason != command.ReasonInvalid {
		t.Errorf("another schema: %+v", report)
	}
}
