package follow_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
)

// varied is a database with what a target has to treat in its own way.
var varied = []string{
	`CREATE TABLE person (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
		upper text GENERATED ALWAYS AS (upper(name)) STORED, seen timestamptz DEFAULT now())`,
	`CREATE TABLE audit (id serial PRIMARY KEY, what text)`,
	`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO public.audit (what) VALUES (TG_OP); RETURN NEW; END $$`,
	`CREATE TRIGGER always AFTER INSERT OR UPDATE ON person FOR EACH ROW EXECUTE FUNCTION note()`,
	`ALTER TABLE person ENABLE ALWAYS TRIGGER always`,
	`CREATE TRIGGER replicated AFTER INSERT ON person FOR EACH ROW EXECUTE FUNCTION note()`,
	`ALTER TABLE person ENABLE REPLICA TRIGGER replicated`,
	`CREATE TRIGGER origin AFTER DELETE ON person FOR EACH ROW EXECUTE FUNCTION note()`,
	`CREATE TABLE guarded (id int PRIMARY KEY, whose text)`,
	`ALTER TABLE guarded ENABLE ROW LEVEL SECURITY`, `ALTER TABLE guarded FORCE ROW LEVEL SECURITY`,
	`CREATE POLICY mine ON guarded USING (true) WITH CHECK (id < 1000)`,
	`CREATE TABLE parts (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)`,
	`CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-07-01')`,
	`CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM ('2026-07-01') TO ('2027-01-01')`,
	`CREATE TABLE whole (a int, b text)`, `ALTER TABLE whole REPLICA IDENTITY FULL`,
	`CREATE TABLE emptied (id int PRIMARY KEY)`, `CREATE UNLOGGED TABLE quick (id int PRIMARY KEY)`,
	`CREATE TABLE child (note text, PRIMARY KEY (id)) INHERITS (emptied)`,
	`CREATE SCHEMA "Odd "" one"`, `CREATE SEQUENCE "Odd "" one"."its ' sequence"`,
	`CREATE TABLE "Odd "" one"."its ' table" (id int PRIMARY KEY, v numeric[])`,
	`INSERT INTO person (name) SELECT 'p' || n FROM generate_series(1, 50) n`,
	`INSERT INTO guarded SELECT n, 'x' FROM generate_series(1, 5) n`, `INSERT INTO emptied VALUES (1), (2)`,
	`INSERT INTO parts VALUES (1, '2026-02-01'), (2, '2026-08-01')`, `INSERT INTO whole VALUES (1, NULL), (2, 'b')`,
	`SELECT lo_from_bytea(4711, 'large')`,
}

// changes are made after the moment that is dumped.
var changes = []string{
	`INSERT INTO person (name) SELECT 'q' || n FROM generate_series(1, 20) n`, `UPDATE person SET name = name || '!' WHERE id < 5`,
	`DELETE FROM person WHERE id BETWEEN 10 AND 15`, `TRUNCATE emptied`, `INSERT INTO child VALUES (9, 'nine')`,
	`UPDATE parts SET at = '2026-09-01' WHERE id = 1`, `DELETE FROM whole WHERE a = 1`, `UPDATE whole SET b = 'c' WHERE a = 2`,
	`INSERT INTO guarded VALUES (6, 'y')`, `UPDATE guarded SET whose = 'z' WHERE id = 1`,
	`SELECT nextval('"Odd "" one"."its '' sequence"')`, `INSERT INTO "Odd "" one"."its ' table" VALUES (1, '{1.5,NULL}')`,
	`BEGIN; INSERT INTO whole VALUES (3, 'not'); ROLLBACK`,
}

// contents is all that a database holds.
const contents = `SELECT md5(string_agg(x, E'\n' ORDER BY x)) || ' ' || count(*) FROM (
	SELECT 'person ' || p::text FROM person p UNION ALL SELECT 'audit ' || a::text FROM audit a
	UNION ALL SELECT 'guarded ' || g::text FROM guarded g UNION ALL SELECT tableoid::regclass || ' ' || p::text FROM parts p
	UNION ALL SELECT 'whole ' || w::text FROM whole w UNION ALL SELECT tableoid::regclass || ' ' || e::text FROM emptied e
	UNION ALL SELECT 'odd ' || t::text FROM "Odd "" one"."its ' table" t
	UNION ALL SELECT concat('sequence ', schemaname, sequencename, ' ', last_value) FROM pg_sequences
	UNION ALL SELECT 'large ' || encode(lo_get(4711), 'escape')
	UNION ALL SELECT concat('trigger ', tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
	UNION ALL SELECT concat('forced ', relname) FROM pg_class WHERE relforcerowsecurity) every (x)`

func TestEverythingMoves(t *testing.T) {
	t.Parallel()
	m := newMove(t, varied...)
	if status, text, err := m.source.Request(http.MethodGet, "/v1/databases/"+m.w.ID+"/movable", nil); err != nil ||
		status != http.StatusOK || !strings.Contains(string(text), `"obstacles":[]`) {
		t.Errorf("in the way is %s (%d, %v)", text, status, err)
	}
	owner := m.source.Owner(t, m.w)
	runtime := m.w.Names().Runtime
	check.Must(owner.Exec(`ALTER ROLE CURRENT_USER IN DATABASE "` + m.w.Name + `" SET work_mem = '7MB';
		GRANT CREATE ON DATABASE "` + m.w.Name + `" TO ` + runtime))(t)
	m.loads(t)
	for _, s := range changes {
		check.Must(owner.Exec(s))(t)
	}
	m.follows(t)
	want := m.source.InDatabase(t, m.w, contents)
	owner.Close()
	m.parted = tell(t, m, m.source, m.parting())
	tell(t, m, m.target, m.taking())
	taken := m.target.One(t, "SELECT clock_timestamp()::text")
	tell(t, m, m.target, m.serving())
	const lives = "SELECT concat(count(*), ' ', min(since) > $2::timestamptz) FROM ledger.incarnation WHERE database_id = $1"
	if got := m.target.One(t, lives, m.w.ID, taken); got != "1 t" { // before, it had its data at the source alone
		t.Errorf("moments can be had back of %s", got)
	}
	if got := m.target.InDatabase(t, m.w, contents); got != want {
		t.Errorf("the target has %s, want %s", got, want)
	}
	whole := `SELECT concat(has_database_privilege('` + runtime + `', current_database(), 'CREATE'), ' ', (SELECT setconfig
		FROM pg_db_role_setting WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = '` + m.w.Name + `')))`
	if got := m.target.InDatabase(t, m.w, whole); got != "t {work_mem=7MB}" {
		t.Errorf("in the database as a whole: %s", got)
	}
	tell(t, m, m.source, m.departing())
	m.source.NoTrace(t, m.w)
	m.source.NoOrphans(t)
	m.target.NoOrphans(t)
	for _, s := range []*agenttest.Stack{m.source, m.target} {
		nothingKept(t, s)
		s.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(m.operation))
	}
	// what fires at the target now fires as it did at the source
	there := m.target.Owner(t, m.w)
	check.Must(there.Exec(`INSERT INTO person (name) VALUES ('new')`))(t)
	if n := m.target.InDatabase(t, m.w, `SELECT count(*) FROM audit WHERE what = 'INSERT'`); n != "71" {
		t.Errorf("triggers have noted %s rows, want 71", n)
	}
}

// Writers that never send again what they are not sure of lose nothing that was confirmed, and double nothing.
func TestWritersLoseNothing(t *testing.T) {
	t.Parallel()
	m := newMove(t, makesEntries)
	w := m.writes(t)
	m.loads(t)
	m.follows(t)
	m.passes(t)
	w.end(t, m.source, m.target)
}

// What does not come by changes of rows is noticed, while customers are served and go on to be.
func TestAlterationsEndAMove(t *testing.T) {
	t.Parallel()
	m := newMove(t, append(slices.Clone(varied), `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`)...)
	m.loads(t)
	m.follows(t)
	owner := m.source.Owner(t, m.w)
	for _, alteration := range []struct{ do, undo, said string }{
		{`INSERT INTO quick VALUES (1)`, `TRUNCATE quick`, "public.quick"},
		{`SELECT lo_put(4711, 0, 'other')`, `SELECT lo_put(4711, 0, 'large')`, "large objects"},
		{`CREATE TEMPORARY TABLE own (id int PRIMARY KEY)`, ``, ``},
		{`REINDEX TABLE CONCURRENTLY audit`, ``, ``},
		{`ALTER ROLE CURRENT_USER IN DATABASE "` + m.w.Name + `" SET work_mem = '5MB'`, ``, "followed: setting"},
		{`CREATE PUBLICATION mine`, ``, "publication"},
		{`COMMENT ON TABLE audit IS 'noted'`, ``, "comment"},
		{`CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 2'`, ``, "function"},
		{`GRANT SELECT ON audit TO PUBLIC`, ``, "privileges"},
		{`ALTER TABLE audit ALTER what SET DEFAULT 'x'`, ``, "default"},
		{`ALTER TABLE audit ALTER what SET NOT NULL`, ``, "attribute"},
		{`CREATE INDEX ON audit (what)`, ``, "index"},
	} {
		check.Must(owner.Exec(alteration.do))(t)
		if alteration.said == "" {
			continue
		}
		_, reason, err := m.source.Send(agenttest.Told(m.operation, m.epoch, m.parting()))
		if err != nil || !strings.HasPrefix(reason, string(command.ReasonAltered)) || !strings.Contains(reason, alteration.said) {
			t.Errorf("after %s: %q, %v", alteration.do, reason, err)
		}
		agenttest.Works(t, alteration.do, owner)
		if alteration.undo != "" {
			check.Must(owner.Exec(alteration.undo))(t)
		}
	}
	m.source.Done(t, agenttest.Closing(m.operation))
	m.target.Done(t, agenttest.Closing(m.operation))
	agenttest.Works(t, "the owner", owner)
	nothingKept(t, m.source)
	nothingKept(t, m.target)
	m.target.NoTrace(t, m.w)
	m.target.NoOrphans(t)
}

// A customer who loses what tells rows apart can go on to change them: the move gives way.
func TestAMoveGivesWay(t *testing.T) {
	t.Parallel()
	m := newMove(t, `CREATE TABLE entry (n int PRIMARY KEY)`, `INSERT INTO entry VALUES (1)`)
	m.loads(t)
	m.follows(t)
	owner := m.source.Owner(t, m.w)
	check.Must(owner.Exec(`ALTER TABLE entry DROP CONSTRAINT entry_pkey`))(t)
	check.Eventually(t, "the owner cannot change rows", func() bool {
		_, err := owner.Exec(`UPDATE entry SET n = n + 1`)
		return err == nil
	})
	_, reason, err := m.source.Send(agenttest.Told(m.operation, m.epoch, m.parting()))
	if err != nil || !strings.Contains(reason, "entry") {
		t.Errorf("%q, %v", reason, err)
	}
	if slots := m.source.One(t, `SELECT count(*) FROM pg_replication_slots`); slots != "0" {
		t.Errorf("%s slots are left", slots)
	}
	m.source.Done(t, agenttest.Closing(m.operation))
	nothingKept(t, m.source)
}

// A change that the target cannot repeat ends the move.
func TestAChangeThatCannotBeRepeated(t *testing.T) {
	t.Parallel()
	m := newMove(t, `CREATE TABLE entry (n int PRIMARY KEY)`)
	m.loads(t)
	m.follows(t)
	there := m.target.SuperIn(t, m.w)
	check.Must(there.Exec(`INSERT INTO entry VALUES (1)`))(t)
	_ = there.Close()
	owner := m.source.Owner(t, m.w)
	check.Must(owner.Exec(`INSERT INTO entry VALUES (1)`))(t)
	var report command.FollowReport
	check.Eventually(t, "the move goes on", func() bool {
		report = tell(t, m, m.target, m.following(t))
		return report.State == command.FollowFailed
	})
	if report.Message == "" || report.Reason != command.ReasonFailed {
		t.Errorf("%+v", report)
	}
	m.target.Done(t, agenttest.Closing(m.operation))
	m.source.Done(t, agenttest.Closing(m.operation))
	nothingKept(t, m.target)
	nothingKept(t, m.source)
}
