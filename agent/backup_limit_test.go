package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// What a customer's code holds up is ended by its limit and reported in words for the customer.
func TestABackupThatTakesTooLongIsReported(t *testing.T) {
	t.Parallel()
	s := ownStack(t)
	s.config.BackupLimits = backup.Limits{Dump: 3 * time.Second, VerifyFactor: 1, VerifyLeast: 2 * time.Second}
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())

	locked := s.filledDatabase(t)
	defer s.lockThings(t, locked)()
	report := s.backedUp(t, locked.backup(newUUID(), backupName, true))
	if report.State != command.BackupFailed || report.Message != "the dump took longer than 3s" {
		t.Errorf("the dump: %+v", report)
	}
	s.noFiles(t, locked)

	trapped := s.trappedDatabase(t, "PERFORM pg_sleep(600)")
	report = s.backedUp(t, trapped.backup(newUUID(), backupName, true))
	const named = `, TABLE DATA public.trapped: "COPY public.trapped (n) FROM stdin;"`
	if report.State != command.BackupNotVerified || !strings.Contains(report.Message, "its verification took longer than ") ||
		!strings.Contains(report.Message, named) {
		t.Errorf("the verification: %+v", report)
	}
	s.nothingOfBackupsLeft(t)
}

// lockThings locks the table of a filled database until unlock.
func (s *stack) lockThings(t testing.TB, w wanted) (unlock func()) {
	t.Helper()
	blocker := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(blocker.Exec("LOCK TABLE things"))(t)
	return func() { _ = blocker.Rollback() } // it only holds the lock
}

// trappedDatabase makes a database with a table whose rows cannot be restored elsewhere without running a customer's code.
func (s *stack) trappedDatabase(t testing.TB, code string) wanted {
	t.Helper()
	w := s.made(t, database.Managed)
	check.Must(s.owner(t, w).Exec(`CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF current_database() <> '` + w.name + `' THEN ` + code + `; END IF; RETURN true; END $$;
		CREATE TABLE trapped (n int CHECK (trap())); INSERT INTO trapped VALUES (1)`))(t)
	return w
}

// nothingOfBackupsLeft checks that no copy, login or session of a backup is left.
func (s *stack) nothingOfBackupsLeft(t testing.TB) {
	t.Helper()
	const left = `SELECT concat_ws(', ', (SELECT string_agg(datname, ' ') FROM pg_database WHERE datname LIKE 'verify\_%'),
		(SELECT string_agg(rolname, ' ') FROM pg_roles WHERE rolname ~ '^(verify|dump)_'),
		(SELECT string_agg(query, ' ') FROM pg_stat_activity WHERE usename ~ '^(verify|dump)_' OR datname LIKE 'verify\_%'))`
	check.Eventually(t, "something of a backup is left", func() bool { return s.one(t, left) == "" })
}
