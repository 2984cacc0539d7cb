package agent_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/recovery"
)

// rescue has tables rescued of the moment.
func (x *archived) rescue(t *testing.T, operation string, change func(*command.Rescue), tables ...string) command.RescueReport {
	t.Helper()
	return agenttest.Outcome(t, x.Stack, agenttest.Told(operation, 1, x.rescuing(t, change, tables...)),
		func(r command.RescueReport) bool { return r.State != command.LookRunning })
}

func (x *archived) rescuing(t *testing.T, change func(*command.Rescue), tables ...string) command.Rescue {
	t.Helper()
	c := command.Rescue{
		DatabaseID: x.of.DatabaseID(), At: x.at, Tables: check.Must(recovery.Tables(tables))(t), MaxBytes: 1 << 40,
	}
	if change != nil {
		change(&c)
	}
	return c
}

// column is what a query of one column returns.
func column(t *testing.T, db *sql.DB, query string, args ...any) (list []string) {
	t.Helper()
	query = "SELECT coalesce(array_agg(v::text), '{}') FROM (" + query + ") AS q (v)"
	check.NoError(t, db.QueryRow(query, args...).Scan(pq.Array(&list)))
	return list
}

// hostile are tables of then. trap fails whoever runs it but the owner.
const hostile = `
	CREATE FUNCTION trap(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
		IF session_user <> current_database() THEN RAISE EXCEPTION 'trapped %', session_user; END IF; RETURN true; END $$;
	CREATE SCHEMA app;
	CREATE DOMAIN app.small AS int CHECK (trap(value));
	CREATE TYPE app.state AS ENUM ('new', 'done');
	CREATE TYPE app.kept AS ENUM ('a', 'b');
	CREATE TYPE app.pair AS (a int, b app.small);
	CREATE TABLE app."Odd ""one" (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "Größe" app.small,
		twice int GENERATED ALWAYS AS (id * 2) STORED, state app.state, kept app.kept[], pair app.pair, gone text, about regclass,
		at timestamptz DEFAULT now(), CHECK (trap(id)));
	ALTER TABLE app."Odd ""one" DROP gone;
	CREATE INDEX ON app."Odd ""one" ((id + 1)) WHERE trap(id);
	INSERT INTO app."Odd ""one" ("Größe", state, kept, pair, about) VALUES
		(1, 'new', '{a,b}', '(1,2)', 'app.small'::regtype::oid::regclass),
		(NULL, NULL, NULL, NULL, 'pg_class'), (3, 'done', '{}', NULL, NULL);
	ALTER TABLE app."Odd ""one" ENABLE ROW LEVEL SECURITY;
	ALTER TABLE app."Odd ""one" FORCE ROW LEVEL SECURITY;
	CREATE TABLE parts (n int, body text) PARTITION BY RANGE (n);
	CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
	CREATE TABLE parts2 (body text, n int);
	ALTER TABLE parts ATTACH PARTITION parts2 FOR VALUES FROM (10) TO (20);
	INSERT INTO parts SELECT n, 'row	' || n || E'\n\\' FROM generate_series(0, 19) n;
	CREATE VIEW seen AS SELECT 1 AS n;
	CREATE UNLOGGED TABLE fleeting (n int);
	CREATE SEQUENCE counter;
	CREATE TABLE empty ();`

// Tables are had back with their rows beside those of now, whatever a customer has made of them, and nothing of the customer's
// runs with others' rights meanwhile.
func TestTablesAreRescued(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	owner := x.Owner(t, x.of)
	check.Must(owner.Exec(hostile))(t)
	check.NoError(t, owner.QueryRow("SELECT clock_timestamp() + '10ms' FROM pg_sleep(0.01)").Scan(&x.at))
	check.Must(owner.Exec(`SELECT pg_sleep(0.03)`))(t)
	check.Must(owner.Exec(`DROP TABLE app."Odd ""one", parts; ALTER TYPE app.state ADD VALUE 'lost'; DELETE FROM things`))(t)

	for wrong, why := range map[string]string{
		"seen": "a view", "fleeting": "unlogged", "counter": "a sequence", "missing": "not there", "pg_catalog.pg_class": "own",
	} {
		r := x.rescue(t, agenttest.NewUUID(), nil, "things", wrong)
		if r.State != command.LookFailed || r.Reason != command.ReasonInvalid || r.Field != "tables[1]" ||
			!strings.Contains(r.Message, why) {
			t.Errorf("%s: %+v", wrong, r)
		}
	}
	small := func(c *command.Rescue) { c.MaxBytes = 1 << 20 }
	if r := x.rescue(t, agenttest.NewUUID(), small, "things"); r.Reason != command.ReasonTooLarge {
		t.Errorf("%+v", r)
	}
	schema := recovery.RescueSchema(x.at)
	if left := column(t, owner, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'rescue%'"); len(left) > 0 {
		t.Fatalf("%v is left", left)
	}

	operation := agenttest.NewUUID()
	r := x.rescue(t, operation, nil, `app."Odd ""one"`, "parts", "things", "empty")
	want := []recovery.Rescued{
		{Of: `app.Odd "one`, Name: `app.Odd "one`, Rows: 3}, {Of: "parts", Name: "parts", Rows: 20},
		{Of: "things", Name: "things", Rows: 2001}, {Of: "empty", Name: "empty"},
	}
	if r.State != command.LookDone || !slices.Equal(r.Tables, want) || len(r.Notes) != 3 {
		t.Fatalf("%+v", r)
	}
	odd := pq.QuoteIdentifier(schema) + `."app.Odd ""one"`
	got := column(t, owner, `SELECT attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull OR atthasdef
		OR attidentity <> '' OR attgenerated <> '' THEN '!' ELSE '' END
		FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum`, odd)
	if want := []string{
		"id integer", "Größe integer", "twice integer", "state text", "kept app.kept[]", "pair text", "about text",
		"at timestamp with time zone",
	}; !slices.Equal(got, want) {
		t.Errorf("the columns are %q", got)
	}
	got = column(t, owner, `SELECT (id, "Größe", twice, state, kept, pair, at IS NULL) FROM `+odd+` ORDER BY id`)
	if want := []string{`(1,1,2,new,"{a,b}","(1,2)",f)`, "(2,,4,,,,f)", "(3,3,6,done,{},,f)"}; !slices.Equal(got, want) {
		t.Errorf("the rows are %q", got)
	}
	got = column(t, owner, `SELECT count(*) FROM `+schema+`.parts WHERE body = 'row	' || n || E'\n\\'
		UNION ALL SELECT count(*) FROM `+schema+`.things WHERE name = 'before'
		UNION ALL SELECT count(*) FROM pg_class WHERE relnamespace = $1::text::regnamespace
			AND pg_get_userbyid(relowner) <> current_user`, schema)
	if want := []string{"20", "0", "0"}; !slices.Equal(got, want) { // "before" was deleted before this moment
		t.Errorf("it has %q", got)
	}

	if again := x.rescue(t, operation, nil, `app."Odd ""one"`, "parts", "things", "empty"); !slices.Equal(again.Tables, want) {
		t.Errorf("again it is %+v", again)
	}
	if r := x.rescue(t, agenttest.NewUUID(), nil, "things"); r.Reason != command.ReasonNameTaken {
		t.Errorf("%+v", r)
	}
	check.Must(owner.Exec("DROP SCHEMA " + schema + " CASCADE"))(t)
}

// An agent that is killed over a rescue leaves the whole of it or nothing, and its successor ends it; so does closing it.
func TestKilledOverARescue(t *testing.T) {
	for _, point := range agenttest.PointsOf(t, "rescue") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			x := archived{Stack: agenttest.Archived(t)}
			c := x.Child(t, "")
			x.StartBouncer(t.Context(), t)
			x.begin(t)
			c.Kill()
			operation := agenttest.NewUUID()
			x.Child(t, point).DiesOver(t, x.Stack, agenttest.Told(operation, 1, x.rescuing(t, nil, "things")))
			schemas := column(t, x.Owner(t, x.of), "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'rescue%'")
			if committed := point == "agent.rescue.committed"; (len(schemas) > 0) != committed {
				t.Errorf("%v is left", schemas)
			}
			x.Child(t, "")
			if r := x.rescue(t, operation, nil, "things"); r.State != command.LookDone || r.Tables[0].Rows != 2001 {
				t.Errorf("%+v", r)
			}
			_, reason, err := x.Send(agenttest.Closing(operation))
			if err != nil || !strings.HasPrefix(reason, string(command.ReasonCompleted)) {
				t.Errorf("closed: %s, %v", reason, err)
			}
		})
	}
}

// What is closed before its end leaves nothing.
func TestARescueThatIsClosed(t *testing.T) {
	t.Parallel()
	x := archived{Stack: agenttest.Archived(t)}
	x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	operation := agenttest.NewUUID()
	x.Done(t, agenttest.Told(operation, 1, x.rescuing(t, nil, "things")))
	time.Sleep(100 * time.Millisecond)
	x.DoneInTheEnd(t, agenttest.Closing(operation))
	if left := column(t, x.Owner(t, x.of), "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'rescue%'"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
