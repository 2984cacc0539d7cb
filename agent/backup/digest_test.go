package backup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/store"
	core "github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Each of these leaves every number as it was.
func TestContentsThatDoNotComeBackEqualAreNamed(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE a (n int, v text); INSERT INTO a VALUES (1, 'one'), (2, 'two'), (3, NULL);
		CREATE TABLE b (n int, v text); INSERT INTO b VALUES (4, 'four');
		CREATE TABLE made (n int DEFAULT 7, v int GENERATED ALWAYS AS (2 * n) STORED); INSERT INTO made DEFAULT VALUES;
		SELECT lo_from_bytea(70001, 'first'), lo_from_bytea(70002, 'other'), lo_create(70003)`)
	unverified := w.Request()
	unverified.Verify = false
	w.Backup(unverified)
	original := w.Text()
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"a changed value":       {[]string{"2\ttwo\n", "2\ttwO\n"}, "contents public.a: expected 3 with digest "},
		"an empty text":         {[]string{"3\t\\N\n", "3\t\n"}, "contents public.a"},
		"two values swapped":    {[]string{"1\tone\n2\ttwo\n", "1\ttwo\n2\tone\n"}, "contents public.a"},
		"a row twice, one gone": {[]string{"2\ttwo\n", "1\tone\n"}, "contents public.a"},
		"rows of two tables": {
			[]string{"2\ttwo\n", "4\tfour\n", "4\tfour\n\\.", "2\ttwo\n\\."}, "; contents public.b",
		},
		"a column's name": {
			[]string{"n integer,\n    v text", "n integer,\n    x text", "COPY public.a (n, v)", "COPY public.a (n, x)"},
			"columns public.a: expected (n, v), found (n, x)",
		},
		"a large object": {
			[]string{`lowrite(0, '\x6669727374')`, `lowrite(0, '\x6669727375')`}, "largeObjects: expected 3 with digest",
		},
		"two large objects": {
			[]string{`lo_open('70001'`, `lo_open('0'`, `lo_open('70002'`, `lo_open('70001'`, `lo_open('0'`, `lo_open('70002'`},
			"largeObjects: expected 3 with digest",
		},
	} {
		w.Replace(func(string) string { return replaced(t, original, c.change...) })
		if _, err := w.Run(w.Agent, w.Request()); !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Replace(func(string) string { return replaced(t, original, "1\tone\n2\ttwo\n", "2\ttwo\n1\tone\n") })
	if _, err := w.Run(w.Agent, w.Request()); err != nil {
		t.Errorf("rows in another order: %v", err)
	}
}

// replaced replaces the first of each old text with the new one that follows it.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		changed := strings.Replace(text, pairs[i], pairs[i+1], 1)
		if changed == text {
			t.Fatalf("the dump does not hold %q", pairs[i])
		}
		text = changed
	}
	return text
}

// everyType has a value of each type whose text depends on a setting, and of others whose text is easily changed by a restore.
const everyType = `CREATE TYPE pair AS (at timestamptz, amount money);
	CREATE DOMAIN price AS money;
	CREATE TABLE kept (n int); CREATE FUNCTION kept_too() RETURNS int LANGUAGE sql RETURN 1;
	CREATE TABLE every (m money DEFAULT '1234.56', ms money[], p price, f float8, g float4, b bytea, at timestamptz, d date,
		z timetz, i interval, r regclass, p2 regprocedure, c pair, tr tstzrange, mr datemultirange, x xml, j json, jb jsonb,
		num numeric,
		ts tsvector, q tsquery, ch char(5), bits varbit, addr inet, pt point, a int[]);
	INSERT INTO every VALUES ('-1234567.89', '{1.5,NULL}', 0.07, 0.1 + 0.2, 1e-40::float4, '\xdeadbeef00',
		'1890-03-01 12:00:00.000001+00', '2026-12-03', '12:00:00+05:30', '-1 year +2 days -03:04:05.6', 'kept', 'kept_too()',
		('2026-03-01 12:00+00', 3),
		'[2026-03-01 12:00+00,infinity)', '{[2026-03-01,2026-03-04)}', '<?xml version="1.0" encoding="UTF-8"?><a> é </a>',
		'{"b" : 1, "a":1, "b":2}', '{"b" : 1, "a":1, "b":2}', 1.500, 'a fat:3A cat', '!a & (b | c)', 'ab', B'0101', '10.0.0.1/8',
		'(0.1,-0)', '[2:3]={1,NULL}'), ('0', '{}', NULL, 'NaN', '-0', '', 'infinity', '-infinity', '00:00-12', 'PT0S', 1259, 0, NULL,
		'empty', '{}', NULL, '"é"', 'null', 'NaN', '', '', E'\t', '', '::1', NULL, NULL);
	INSERT INTO every DEFAULT VALUES;`

// What a customer sets for a database or for all logins changes neither what is written nor what is read.
func TestNoSettingChangesADigest(t *testing.T) {
	var contents []core.Contents
	for _, settings := range [][]string{nil, {
		"DateStyle = 'SQL, DMY'", "IntervalStyle = iso_8601", "extra_float_digits = 0", "bytea_output = escape", "TimeZone = 'EST5EDT'",
		"client_encoding = LATIN1", "search_path = other, public", "lc_monetary = 'C.UTF-8'", "quote_all_identifiers = on",
		"standard_conforming_strings = off", "xmlbinary = hex", "xmloption = document", "array_nulls = off", "row_security = off",
	}} {
		w := newWorld(t)
		w.Load(everyType)
		for i, s := range settings {
			clustertest.Exec(t, w.Cluster.URL("postgres"), `ALTER DATABASE `+w.Name+` SET `+s)
			if name, _, _ := strings.Cut(s, " "); i < 5 { // an operator's
				clustertest.Exec(t, w.Cluster.URL("postgres"), `ALTER ROLE pgherd_agent SET `+s)
				t.Cleanup(func() { clustertest.Exec(t, w.Cluster.URL("postgres"), `ALTER ROLE pgherd_agent RESET `+name) })
			}
		}
		result, err := w.Run(w.Agent, w.Request())
		if err != nil {
			t.Fatalf("with %q: %v", settings, err)
		}
		contents = append(contents, result.Manifest.Contents)
	}
	if diff := cmp.Diff(contents[0].Digests, contents[1].Digests); diff != "" || len(contents[0].Digests) != 2 {
		t.Error(diff)
	}
	if diff := cmp.Diff(core.DigestSettings(), contents[1].DigestSettings); diff != "" {
		t.Error(diff)
	}
}

// Rows that a dump loads into another table than that which had them, columns that come back in another order, and tables without
// columns to read.
func TestEveryTableHasADigestThatComesBack(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TYPE color AS ENUM ('red', 'green', 'blue', 'pink', 'gray', 'gold');
		CREATE TABLE hashed (c color, n int) PARTITION BY HASH (c);
		CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (modulus 3, remainder 0);
		CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (modulus 3, remainder 1);
		CREATE TABLE hashed_2 (n int, c color);
		ALTER TABLE hashed ATTACH PARTITION hashed_2 FOR VALUES WITH (modulus 3, remainder 2);
		INSERT INTO hashed SELECT unnest(enum_range(NULL::color)), generate_series(1, 6);
		CREATE TABLE spread (c color, n int) PARTITION BY HASH (c);
		CREATE TABLE spread_0 PARTITION OF spread FOR VALUES WITH (modulus 2, remainder 0) PARTITION BY RANGE (n);
		CREATE TABLE spread_1 PARTITION OF spread FOR VALUES WITH (modulus 2, remainder 1);
		CREATE TABLE spread_00 PARTITION OF spread_0 DEFAULT;
		INSERT INTO spread TABLE hashed;
		CREATE TABLE parts (n int, v text) PARTITION BY LIST (n);
		CREATE TABLE part PARTITION OF parts DEFAULT; INSERT INTO parts VALUES (1, 'x');
		CREATE TABLE parent (a int); CREATE TABLE child (b int, c int) INHERITS (parent); ALTER TABLE parent ADD z int;
		ALTER TABLE child DROP b; INSERT INTO child VALUES (1, 2, 3);
		CREATE TABLE hidden (a int); INSERT INTO hidden VALUES (1);
		ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
		CREATE TABLE none (); INSERT INTO none DEFAULT VALUES;
		CREATE TABLE made (a int GENERATED ALWAYS AS (1) STORED); INSERT INTO made DEFAULT VALUES;
		CREATE UNLOGGED TABLE "odd "" name" ("odd "" column" text, "from" int, ")" int);
		INSERT INTO "odd "" name" VALUES (E'a\nb\\.\n\t\\N', 1, 2), (repeat('x', 3000000), NULL, NULL), ('', NULL, 1)`)
	result := check.Must(w.Run(w.Agent, w.Request()))(t)
	c := result.Manifest.Contents
	for name, want := range map[string]core.TableDigest{
		"public.spread": {Columns: []string{"c", "n"}, Rows: 6}, "public.part": {Columns: []string{"n", "v"}, Rows: 1},
		"public.child": {Columns: []string{"a", "c", "z"}, Rows: 1}, "public.none": {Rows: 1}, "public.made": {Rows: 1},
		`public."odd "" name"`: {Columns: []string{`odd " column`, "from", ")"}, Rows: 3},
		"public.parent":        {Columns: []string{"a", "z"}}, "public.hidden": {Columns: []string{"a"}, Rows: 1},
	} {
		got := c.Digests[name]
		got.Sum = ""
		if rows, counted := c.Rows[name]; !counted || rows != want.Rows {
			t.Errorf("%s: %d rows, counted: %t", name, rows, counted)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, taken := c.Digests["public.hashed"]; taken || c.Rows["public.hashed"] != 6 {
		t.Errorf("rows with their values in two orders have a digest, or are %d", c.Rows["public.hashed"])
	}
	if len(c.Digests) != 8 || len(c.Rows) != 9 {
		t.Errorf("%d digests, rows %v", len(c.Digests), c.Rows)
	}
}

// What a customer defines may write rows of its own while a dump is loaded: they are counted, beside those of the dump.
func TestRowsThatAreWrittenBesideADumpAreCounted(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE audit (n int); CREATE FUNCTION audited(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.audit VALUES (n);
			RETURN true;
		END $$;
		CREATE TABLE a (n int CHECK (public.audited(n))); INSERT INTO a VALUES (1), (2)`)
	config := w.Config()
	config.CountsOnly = true
	_, err := w.Run(w.NewAgent(config), w.Request())
	if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), "rows public.audit: expected 2, found 4") {
		t.Error(err)
	}
}

// By counts only, and by a manifest without digests, a changed row is not found. A missing one is, of whatever table, and
// everything else.
func TestCopiesAreComparedByCountsWhereThereAreNoDigests(t *testing.T) {
	w := newWorld(t)
	w.Load(`CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2); SELECT lo_from_bytea(70001, 'x'); CREATE TABLE none (n int);
		CREATE TYPE color AS ENUM ('red', 'green', 'blue'); CREATE TABLE hashed (c color) PARTITION BY HASH (c);
		CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 0);
		CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 1);
		INSERT INTO hashed SELECT unnest(enum_range(NULL::color));
		CREATE TABLE "Ma ""ny" AS SELECT n, n + 4000000 AS name FROM generate_series(1, 10000) n; CREATE TABLE parent (v text);
		CREATE TABLE child () INHERITS (parent); INSERT INTO parent VALUES ('above'); INSERT INTO child VALUES ('below')`)
	config := w.Config()
	config.CountsOnly = true
	counting := w.NewAgent(config)
	for name, agent := range map[string]*backuptest.Agent{"by a setting": counting, "by the manifest": w.Agent} {
		req := w.Request()
		req.Verify = false
		result := check.Must(w.Run(agent, req))(t)
		if has := result.Manifest.Contents.HasDigests(); has != (agent == w.Agent) {
			t.Errorf("%s: digests: %t", name, has)
		}
		w.Replace(func(text string) string { return replaced(t, text, "1\n2\n", "1\n3\n") })
		if agent == w.Agent {
			w.manifest(func(m *core.Manifest) {
				m.FormatVersion, m.LargeObjects = 3, nil
				m.Contents.Digests, m.Contents.DigestSettings, m.Contents.LargeObjectDigest = nil, nil, nil
			})
		}
		if result, err := w.Run(w.Agent, w.Request()); err != nil || result.VerifiedAt == nil {
			t.Errorf("%s: %v", name, err)
		}
		lost := []string{"1\n3\n", "1\n", "green\n", "", "77\t4000077\n", "", "below\n", ""}
		w.Replace(func(text string) string { return replaced(t, text, lost...) })
		_, err := w.Run(w.Agent, w.Request())
		const want = `rows public."Ma ""ny": expected 10000, found 9999; rows public.child: expected 1, found 0; ` +
			`rows public.hashed: expected 3, found 2; and 1 more`
		if !fault.Has(err, fault.BackupNotVerified) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		check.NoError(t, w.Agent.Discard(t.Context(), w.Request()))
	}
}

// manifest writes another manifest.
func (w *world) manifest(change func(*core.Manifest)) {
	w.T.Helper()
	w.Rewrite(func(m *core.Manifest, _, _ []byte) (data, sidecar []byte) {
		change(m)
		return nil, nil
	})
}

// A sidecar has nothing of large objects: pg_dump leaves them out of a schema.
func TestOwnersAndGrantsOfLargeObjectsAreKept(t *testing.T) {
	w := newWorld(t)
	w.Load(`SELECT lo_from_bytea(o, 'x') FROM generate_series(70001, 70009) o;
		GRANT SELECT ON LARGE OBJECT 70004, 70005 TO PUBLIC;
		GRANT SELECT, UPDATE ON LARGE OBJECT 70004, 70005 TO "shop reader" WITH GRANT OPTION;
		ALTER LARGE OBJECT 70007 OWNER TO "shop reader";
		GRANT SELECT ON LARGE OBJECT 70007 TO shop`)
	req := w.Request()
	req.Verify = false
	result := check.Must(w.Run(w.Agent, req))(t)
	grant := func(grantor, grantee string, privileges ...string) core.Grant {
		return core.Grant{Kind: "large object", Grantor: grantor, Grantee: grantee, Privileges: privileges, WithOption: []string{}}
	}
	reader := grant("shop", "shop reader", "SELECT", "UPDATE")
	reader.WithOption = reader.Privileges
	want := []core.LargeObjects{
		{First: 70001, Last: 70003, Owner: "shop"},
		{First: 70004, Last: 70005, Owner: "shop", Grants: []core.Grant{
			grant("shop", "PUBLIC", "SELECT"), grant("shop", "shop", "SELECT", "UPDATE"), reader,
		}},
		{First: 70006, Last: 70006, Owner: "shop"},
		{First: 70007, Last: 70007, Owner: "shop reader", Grants: []core.Grant{
			grant("shop reader", "shop", "SELECT"), grant("shop reader", "shop reader", "SELECT", "UPDATE"),
		}},
		{First: 70008, Last: 70009, Owner: "shop"},
	}
	if diff := cmp.Diff(want, result.Manifest.LargeObjects); diff != "" {
		t.Error(diff)
	}
	if _, err := w.Run(backuptest.NewAgent(w.Config(), w.Store(store.Options{Reserve: 1})), w.Request()); err != nil {
		t.Errorf("such a backup does not come back: %v", err)
	}
}
