package backup_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/content"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// added are what an owner adds to an extension: then no dump has it, nor what is part of it.
var added = []struct{ kind, name, made string }{
	{"aggregate", "public.total(integer)", `CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int)`},
	{"cast", "(public.celsius AS integer)", `CREATE TYPE celsius AS (n int);
		CREATE FUNCTION degrees(celsius) RETURNS int LANGUAGE sql RETURN ($1).n;
		CREATE CAST (celsius AS int) WITH FUNCTION degrees(celsius)`},
	{"collation", "public.plain", `CREATE COLLATION plain FROM "C"`},
	{"conversion", "public.turned", `CREATE CONVERSION turned FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8`},
	{"function", "public.f(integer, text)", `CREATE FUNCTION f(int, text) RETURNS int LANGUAGE sql RETURN 1`},
	{"materialized view", "public.sums", `CREATE MATERIALIZED VIEW sums AS SELECT 1 AS n; CREATE INDEX ON sums (n)`},
	{"operator", "public.=~=(integer,integer)", `CREATE OPERATOR =~= (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)`},
	{"procedure", "public.p()", `CREATE PROCEDURE p() LANGUAGE sql BEGIN ATOMIC END`},
	{"schema", "side", `CREATE SCHEMA side`},
	{"sequence", "public.counter", `CREATE SEQUENCE counter; SELECT nextval('counter')`},
	{"table", `public."Orders"`, `CREATE TABLE "Orders" (id serial PRIMARY KEY, n int CHECK (n > 0), UNIQUE (n));
		INSERT INTO "Orders" (n) VALUES (1); CREATE INDEX ON "Orders" ((n + 1)); COMMENT ON TABLE "Orders" IS 'of the customer'`},
	{"table", "public.part", `CREATE TABLE whole (n int) PARTITION BY LIST (n); CREATE TABLE part PARTITION OF whole DEFAULT;
		INSERT INTO whole VALUES (1)`},
	{"table", "public.parts", `CREATE TABLE parts (n int) PARTITION BY LIST (n)`},
	{"text search configuration", "public.words", `CREATE TEXT SEARCH CONFIGURATION words (COPY = simple)`},
	{"text search dictionary", "public.stems", `CREATE TEXT SEARCH DICTIONARY stems (TEMPLATE = simple)`},
	{"type", "public.color", `CREATE TYPE color AS ENUM ('red')`},
	{"type", "public.pair", `CREATE TYPE pair AS (a int)`},
	{"type", "public.price", `CREATE DOMAIN price AS int`},
	{"view", "public.v", `CREATE VIEW v AS SELECT 1 AS one`},
}

// scripted is what the script of an extension makes and leaves to who creates the extension.
const scripted = `CREATE EXTENSION citext; CREATE TABLE countries (code text PRIMARY KEY); INSERT INTO countries VALUES ('is');
	CREATE TABLE rates (n int); CREATE TABLE quiet (n int); INSERT INTO quiet VALUES (1); CREATE SEQUENCE quiet_n;
	CREATE TABLE settings (name text); CREATE FUNCTION greet() RETURNS text LANGUAGE sql RETURN 'hello'; CREATE SEQUENCE tickets;
	CREATE TYPE state AS ENUM ('new'); CREATE VIEW today AS SELECT 1 AS n;
	ALTER EXTENSION citext ADD TABLE countries; ALTER EXTENSION citext ADD TABLE rates; ALTER EXTENSION citext ADD TABLE quiet;
	ALTER EXTENSION citext ADD TABLE settings; ALTER EXTENSION citext ADD FUNCTION greet; ALTER EXTENSION citext ADD TYPE state;
	ALTER EXTENSION citext ADD SEQUENCE tickets; ALTER EXTENSION citext ADD SEQUENCE quiet_n; ALTER EXTENSION citext ADD VIEW today;`

// configured makes a table one whose rows a dump has, as pg_extension_config_dump does in a script.
const configured = `UPDATE pg_extension SET extconfig = ARRAY['settings'::regclass::oid], extcondition = ARRAY['']
	WHERE extname = 'citext'`

// changed is what a customer makes of that. What pg_dump has of it is not named.
var changed = []struct{ kind, name, made string }{
	{"rows", "public.countries", `INSERT INTO countries VALUES ('no')`},
	{"", "", `INSERT INTO settings VALUES ('kept')`},
	{"table", "public.rates", `ALTER TABLE rates ADD note text`},
	{"columns", "public.rates", ``},
	{"column default", "public.rates.n", `ALTER TABLE rates ALTER n SET DEFAULT 7`},
	{"check constraint", "positive on public.rates", `ALTER TABLE rates ADD CONSTRAINT positive CHECK (n > 0)`},
	{"unique constraint", "once on public.rates", `ALTER TABLE rates ADD CONSTRAINT once UNIQUE (n)`},
	{"index", "public.notes", `CREATE INDEX notes ON rates (note)`},
	{"statistics object", "public.pairs_of", `CREATE STATISTICS pairs_of ON n, note FROM rates`},
	{"rule", "never on public.rates", `CREATE RULE never AS ON DELETE TO rates DO INSTEAD NOTHING`},
	{"trigger", "once on public.rates", `CREATE FUNCTION done() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER once BEFORE INSERT ON rates FOR EACH ROW EXECUTE FUNCTION done()`},
	{"policy", "few on public.rates", `CREATE POLICY few ON rates`},
	{"", "", `GRANT SELECT ON rates TO "shop reader"`},
	{"publication relation", "public.rates in publication all_rates", `CREATE PUBLICATION all_rates FOR TABLE rates`},
	{"table", "public.countries", `COMMENT ON TABLE countries IS 'of the customer'`},
	{"function", "public.greet()", `CREATE OR REPLACE FUNCTION greet() RETURNS text LANGUAGE sql RETURN 'hi'`},
	{"sequence", "public.tickets", `SELECT nextval('tickets')`},
	{"type", "public.state", `ALTER TYPE state ADD VALUE 'old'`},
	{"view", "public.today", `CREATE OR REPLACE VIEW today AS SELECT 2 AS n`},
	{"contents", "public.quiet", `UPDATE quiet SET n = 2`},
}

// What a dump leaves out is named, whatever it is, and nothing else is.
func TestWhatNoDumpHoldsIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(scripted)
	w.PSQL(w.URL, configured)
	var script strings.Builder
	var want []string
	for _, a := range added {
		script.WriteString(a.made + `; ALTER EXTENSION citext ADD ` + a.kind + ` ` + a.name + `;`)
		want = append(want, a.kind+" "+a.name)
	}
	for _, c := range changed {
		script.WriteString(c.made + `;`)
		if c.kind != "" {
			want = append(want, c.kind+" "+c.name)
		}
	}
	w.Load(script.String())
	unverified := w.Request()
	unverified.Verify = false
	m := w.Backup(unverified).Manifest
	copied := newWorld(t)
	copied.Load(scripted)
	copied.PSQL(copied.URL, configured)
	copied.Load(w.Text())
	var got []string
	for _, d := range check.Must(core.Compare(m.Manifest, copied.observed(m.Contents)))(t) {
		got = append(got, d.Kind+" "+d.Object)
		if d.Extension != "citext" {
			t.Errorf("not of the extension: %s", d)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// observed is what a database has, as a verification reads it.
func (w *world) observed(want core.Contents) (found core.Contents) {
	w.T.Helper()
	server := w.Agent.Copies.Server
	check.NoError(w.T, server.With(w.Name, backuptest.OperationID, func(db *sql.DB) (err error) {
		ctx := w.T.Context()
		if found, err = content.Observe(ctx, db); err != nil {
			return err
		}
		connect := func(ctx context.Context) (*pgconn.PgConn, error) {
			return server.Connect(ctx, w.Name, backuptest.OperationID)
		}
		if err := content.Read(ctx, db, connect, want, &found, func(int64, int64) {}); err != nil {
			return err
		}
		found.Sequences, err = content.Sequences(ctx, db)
		return err
	}))
	return found
}

// A customer reads what it is and how the backup after holds it, and that one does: also where the dump cannot be loaded, as
// something else needs it.
func TestAnExtensionsMemberFailsTheBackupUntilItIsTakenOut(t *testing.T) {
	for name, more := range map[string]string{"alone": "", "needed": `CREATE TABLE lines (n int REFERENCES orders)`} {
		t.Run(name, func(t *testing.T) { failsUntilTakenOut(t, more) })
	}
}

func failsUntilTakenOut(t *testing.T, more string) {
	t.Helper()
	w := newWorld(t)
	w.Load(`CREATE EXTENSION citext; CREATE TABLE orders (n int PRIMARY KEY); INSERT INTO orders VALUES (1);
		ALTER EXTENSION citext ADD TABLE orders; ` + more)
	_, err := w.Run(w.Agent, w.Request())
	var failed *fault.Error
	const out = "ALTER EXTENSION citext DROP TABLE public.orders"
	want := "table public.orders of extension citext: expected columns (n integer not null), missing; no dump holds what was " +
		"added to an extension: after " + out + ", a new backup has it"
	if !errors.As(err, &failed) || failed.Code != fault.BackupNotVerified || !strings.HasSuffix(failed.Message, want) {
		t.Errorf("%v", err)
	}
	check.NoError(t, w.Agent.Discard(t.Context(), w.Request()))
	w.Load(out)
	if result := check.Must(w.Run(w.Agent, w.Request()))(t); result.VerifiedAt == nil ||
		result.Manifest.Contents.Rows["public.orders"] != 1 {
		t.Errorf("%+v", result)
	}
}
