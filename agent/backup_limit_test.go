package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// trappedDatabase makes a database with a table whose rows cannot be restored elsewhere without running a customer's code.
func trappedDatabase(t testing.TB, s *agenttest.Stack, code string) agenttest.Wanted {
	t.Helper()
	w := s.Made(t, database.Managed)
	check.Must(s.Owner(t, w).Exec(`CREATE FUNCTION trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
			IF current_database() <> '` + w.Name + `' THEN ` + code + `; END IF; RETURN true; END $$;
		CREATE TABLE trapped (n int CHECK (trap())); INSERT INTO trapped VALUES (1)`))(t)
	return w
}

// nothingOfBackupsLeft checks that no copy, login or session of a backup is left.
func nothingOfBackupsLeft(t testing.TB, s *agenttest.Stack) {
	t.Helper()
	const left = `SELECT concat_ws(', ', (SELECT string_agg(datname, ' ') FROM pg_database WHERE datname LIKE 'verify\_%'),
		(SELECT string_agg(rolname, ' ') FROM pg_roles WHERE rolname ~ '^(verify|dump)_'),
		(SELECT string_agg(query, ' ') FROM pg_stat_activity WHERE usename ~ '^(verify|dump)_' OR datname LIKE 'verify\_%'))`
	check.Eventually(t, "something of a backup is left", func() bool { return s.One(t, left) == "" })
}
