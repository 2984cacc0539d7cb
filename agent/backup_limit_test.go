package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

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
