package agent_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// What a customer has written runs as the copy's login, and not once that is shut.
func TestCodeInABackupRunsAsItsLogin(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	check.Must(s.Owner(t, w).Exec(agenttest.Trap))(t)
	s.Saved(t, w)
	s.Restored(t, w)
	if n := s.InDatabase(t, w, "SELECT count(*) FROM prey"); n != "20" {
		t.Errorf("%s rows", n)
	}
}

// What a backup cannot be restored for is told with statement and line, and the live database is not touched.
func TestABackupThatCannotBeRestored(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	check.Must(s.Owner(t, w).Exec(`CREATE FUNCTION elsewhere(n int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
		$$ BEGIN RETURN current_database() NOT LIKE 'restore%'; END $$;
		CREATE TABLE picky (id int CONSTRAINT here CHECK (elsewhere(id))); INSERT INTO picky VALUES (1)`))(t)
	s.Saved(t, w)
	operation := agenttest.NewUUID()
	report := s.Loaded(t, w.Load(operation))
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid ||
		!strings.Contains(report.Message, "statement ") ||
		!strings.Contains(report.Message, "TABLE DATA public.picky") || !strings.Contains(report.Message, "SQLSTATE 23514") {
		t.Errorf("%+v", report)
	}
	s.RefusedFor(t, command.ReasonNotFound, w.Switching(operation))
	s.NothingOf(t, operation)
	s.Done(t, agenttest.Closing(operation))
	s.GetsIn(t, "afterwards", w.Present(database.OwnerLogin))
}

// An update of PostgreSQL or pg_dump makes no backup useless, unless the new one writes the schema differently: then the error
// says that this may be all.
func TestABackupOfAnotherVersion(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	check.Must(s.Owner(t, w).Exec("CREATE TABLE things (id int)"))(t)
	s.Saved(t, w)
	s.Doctored(t, w, func(schema string) string {
		schema = regexp.MustCompile(`(Dumped by pg_dump version).*`).ReplaceAllString(schema, "$1 16.3 (Debian)")
		return strings.Replace(schema, "SET transaction_timeout = 0;", "SET another_setting = off;", 1)
	})
	operation := agenttest.NewUUID()
	if report := s.Loaded(t, w.Load(operation)); report.State != command.LoadReady {
		t.Errorf("%+v", report)
	}
	s.Done(t, agenttest.Closing(operation))
	s.Doctored(t, w, func(schema string) string {
		return strings.Replace(schema, "id integer", "id int4", 1)
	})
	operation = agenttest.NewUUID()
	report := s.Loaded(t, w.Load(operation))
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid ||
		!strings.Contains(report.Message, "TABLE public.things is different; the backup was written by PostgreSQL 16.") ||
		!strings.Contains(report.Message, "and pg_dump 16.3, its copy by PostgreSQL 16.") {
		t.Errorf("%+v", report)
	}
	s.NothingOf(t, operation)
}
