package uploads_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// What pg_dump makes of a customer's own database, wherever that is, becomes the database: with every owner its owner.
func TestRestoreOfAnUpload(t *testing.T) {
	s := agenttest.Shared(t)
	w, from := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, from).Exec(`CREATE SCHEMA "a b"; CREATE TABLE "a b".things (id serial PRIMARY KEY, name text);
		INSERT INTO "a b".things (name) SELECT 'thing; \. ' || n FROM generate_series(1, 500) n; CREATE EXTENSION pg_trgm;
		CREATE MATERIALIZED VIEW numbers AS SELECT count(*) FROM "a b".things; SELECT lo_from_bytea(4711, 'large');
		ALTER TABLE "a b".things ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON "a b".things USING (id > 1);
		CREATE FUNCTION f(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN n > 1 THEN 2 END; END;
		COMMENT ON SCHEMA "a b" IS 'a; b'; CREATE PUBLICATION p FOR TABLE "a b".things`))(t)
	for _, mode := range [][]string{{}, {"--inserts", "--clean", "--if-exists"}} {
		arguments := append(mode, "--no-owner", "--no-privileges", s.PG.URL(from.Name))
		dump, err := exec.Command(s.Config.PgDump, arguments...).Output()
		check.NoError(t, err)
		u := s.Sent(t, w, agenttest.Zipped(string(dump)))
		operation := agenttest.NewUUID()
		if report := s.Loaded(t, u.Load(operation)); report.State != command.LoadReady {
			t.Fatalf("%s: %+v", mode, report)
		}
		s.Done(t, w.Switching(operation))
		s.Discarded(t, w, operation)
		s.Ask(t, u.Drop())
		want := strings.ReplaceAll(s.Dumped(t, from), from.Name, w.Name)
		if got := s.Dumped(t, w); got != want {
			t.Errorf("%s: %s\nbut wanted %s", mode, got, want)
		}
		s.GetsIn(t, "afterwards", w.Present(database.OwnerLogin))
	}
}
