package uploads_test

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/upload"
)

// refusals are uploads of which something is executed before they are refused, with what is said of each. What is refused before
// that, such as by how a statement begins, has its tests in copies and dumpsql.
var refusals = map[string]struct{ sql, said string }{
	`\! after data (CVE-2025-8714)`: {
		"CREATE TABLE a (b int);\nCOPY a FROM stdin;\n\\.\n\\! id\n", "statement 3, line 4: backslash command",
	},
	"COPY of another shape": {"CREATE TABLE a (b int);\nCOPY a FROM stdin;\n1\t2\n\\.\n", "statement 2 on line 2"},
	"COPY without end": {
		"CREATE TABLE a (b int);\nCOPY a FROM stdin;\n1\n", "statement 2, line 4: the dump ends in the middle",
	},
	"COPY into a view": {"CREATE VIEW v AS SELECT 1 AS a;\nCOPY v FROM stdin;\n1\n\\.\n", "statement 2 on line 2"},
	"COPY that unpacks to too much": {
		"CREATE TABLE a (b text);\nCOPY a FROM stdin;\n" + strings.Repeat("\n", 1<<20), "it unpacks to more than 200 times its size",
	},
	"how strings are read":        {"\nSET standard_conforming_strings = off;", "standard_conforming_strings must stay on"},
	"an encoding of half a quote": {"\nSET client_encoding = 'SJIS';", "client_encoding SJIS is not allowed"},
	"a function in C": {
		"\n\nCREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'system';", "statement 1 on line 3",
	},
	"a privilege by code":  {byCode("GRANT SELECT ON code TO pgherd_pooler"), "it gives something to pgherd_pooler"},
	"a policy by code":     {byCode("CREATE POLICY p ON code TO pgherd_pooler"), "it gives something to pgherd_pooler"},
	"an error by code":     {byCode("SELECT 1/0"), "SQLSTATE 22012"},
	"an open transaction":  {"BEGIN;\nCREATE TABLE a (b int);\n", "it ends within a transaction"},
	"a failed transaction": {"BEGIN;\nCREATE TABLE a (b int);\nCREATE TABLE a (b int);\n", "statement 3 on line 3"},
	"a prepared one":       {"BEGIN;\nPREPARE TRANSACTION 'x';", "statement 2 on line 2"},
}

// byCode is a dump whose code executes a statement.
func byCode(statement string) string {
	return `CREATE TABLE public.code (a int);
		CREATE FUNCTION public.run() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN EXECUTE $s$` + statement + `$s$; RETURN NEW; END $f$;
		CREATE TRIGGER run BEFORE INSERT ON public.code FOR EACH ROW EXECUTE FUNCTION public.run();
		INSERT INTO public.code VALUES (1);
` + upload.ClosingLine
}

// everything is what the server has for all databases, and what is locked in one.
func everything(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) string {
	t.Helper()
	return s.One(t, `SELECT concat_ws(E'\n',
		(SELECT string_agg(a::text, E'\n' ORDER BY oid) FROM pg_authid a),
		(SELECT string_agg(concat_ws(' ', datname, datdba, datconnlimit, datallowconn,
			(SELECT string_agg(x::text, ',' ORDER BY x::text) FROM unnest(datacl) x)), E'\n' ORDER BY datname) FROM pg_database),
		(SELECT string_agg(m::text, E'\n' ORDER BY oid) FROM pg_auth_members m),
		(SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM pg_db_role_setting x),
		(SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM pg_parameter_acl x),
		(SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM pg_file_settings x),
		(SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM pg_shdescription x),
		(SELECT count(*) FROM pg_prepared_xacts), (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_tablespace),
		(SELECT count(*) FROM pg_subscription), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
			(SELECT oid FROM pg_database WHERE datname = $1)))`, w.Name)
}

func unchanged(t testing.TB, s *agenttest.Stack, before string, w agenttest.Wanted) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(everything(t, s, w), "\n")); diff != "" {
		t.Error("the server has changed: ", diff)
	}
}

// An upload that is refused leaves nothing: the database serves as before, and so do others.
func TestUploadsThatAreRefused(t *testing.T) {
	s := agenttest.Shared(t)
	w, other := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec("CREATE TABLE word AS SELECT 'live' AS said"))(t)
	before := everything(t, s, w)
	for i, what := range slices.Sorted(maps.Keys(refusals)) {
		if !agenttest.Turn(i, 0, 2) {
			continue
		}
		attack := refusals[what]
		t.Run(what, func(t *testing.T) { refusedUpload(t, s, s.Sent(t, w, agenttest.Zipped(attack.sql)), attack.said) })
	}
	unchanged(t, s, before, w)
	if said := s.InDatabase(t, w, "SELECT said FROM word"); said != "live" {
		t.Error(said)
	}
	s.GetsIn(t, "the database", w.Present(database.OwnerLogin))
	s.GetsIn(t, "another", other.Present(database.OwnerLogin))
}

// refusedUpload demands that an upload is not restored, and that nothing is left of the restore.
func refusedUpload(t testing.TB, s *agenttest.Stack, u agenttest.Upload, said string) {
	t.Helper()
	operation := agenttest.NewUUID()
	report := s.Loaded(t, u.Load(operation))
	if report.State != command.LoadFailed || report.Reason != command.ReasonInvalid || !strings.Contains(report.Message, said) ||
		!strings.HasPrefix(report.Message, "the upload cannot be restored: ") {
		t.Errorf("%+v", report)
	}
	s.RefusedFor(t, command.ReasonNotFound, u.W.Switching(operation))
	s.NothingOf(t, operation)
	s.Done(t, agenttest.Closing(operation))
	s.Ask(t, u.Drop())
}

// attempts are what code in a dump may try while it is restored, each with the SQLSTATE that it gets, or done, where it must be
// harmless. They run in a trigger, in a transaction of their own each.
//
//go:embed testdata/attempts.txt
var attempts string

// eachAttempt yields statements and what becomes of them.
func eachAttempt(yield func(sql, becomes string) bool) {
	for line := range strings.Lines(attempts) {
		becomes, sql, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && becomes != "#" && !yield(sql, becomes) {
			return
		}
	}
}

// shell is a dump that makes the attempts.
const shell = `CREATE TABLE public.attempts (sql text, said text);
	CREATE TYPE public.kind AS ENUM ('a');
	CREATE FUNCTION public.to_text(public.kind) RETURNS text LANGUAGE sql AS $$SELECT 'a'$$;
	CREATE FUNCTION public.event() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN END$$;
	CREATE FUNCTION public.trapped_name(name, name) RETURNS boolean LANGUAGE sql AS $$SELECT public.trap(1) = 1$$;
	CREATE FUNCTION public.attempt() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
		BEGIN EXECUTE NEW.sql; NEW.said := 'done'; EXCEPTION WHEN OTHERS THEN NEW.said := SQLSTATE; END; RETURN NEW; END $f$;
	CREATE TRIGGER attempt BEFORE INSERT ON public.attempts FOR EACH ROW EXECUTE FUNCTION public.attempt();
`

// Whatever code in an upload tries, it is a login of its copy and nothing else, and what it leaves is the owner's.
func TestCodeInAnUpload(t *testing.T) {
	s := agenttest.Shared(t)
	w, other := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	before := everything(t, s, other)
	dump := `SET check_function_bodies = false;` + agenttest.Trap + shell
	for sql := range eachAttempt {
		dump += "INSERT INTO public.attempts VALUES ($a$" + sql + "$a$);\n"
	}
	u := s.Sent(t, w, agenttest.Dump(dump))
	operation := agenttest.NewUUID()
	if report := s.Loaded(t, u.Load(operation)); report.State != command.LoadReady {
		t.Fatalf("%+v", report)
	}
	s.Marked(t, operation)
	s.Done(t, w.Switching(operation))
	s.Discarded(t, w, operation)
	s.Ask(t, u.Drop())
	saidOfAttempts(t, s, w)
	if n := s.InDatabase(t, w, `SELECT count(*) FROM prey`); n != "20" {
		t.Errorf("%s rows", n)
	}
	unchanged(t, s, before, other)
	s.GetsIn(t, "the database", w.Present(database.OwnerLogin))
	s.GetsIn(t, "another", other.Present(database.OwnerLogin))
	listening := check.Must(s.Owner(t, other).Conn(t.Context()))(t)
	check.Must(listening.ExecContext(t.Context(), "LISTEN flood; NOTIFY flood"))(t)
	check.NoError(t, listening.Close())
	s.Saved(t, w) // a backup reads all of it again
}

func saidOfAttempts(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	db := s.SuperIn(t, w)
	defer db.Close()
	rows := check.Must(db.Query(`SELECT sql, said FROM public.attempts`))(t)
	defer rows.Close()
	got := map[string]string{}
	for rows.Next() {
		var sql, said string
		check.NoError(t, rows.Scan(&sql, &said))
		got[sql] = said
	}
	check.NoError(t, rows.Err())
	if diff := cmp.Diff(maps.Collect(eachAttempt), got); diff != "" {
		t.Error(diff)
	}
}
