package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

var dumpedAt = time.Date(2026, time.January, 31, 9, 30, 0, 0, time.UTC)

func snapshotsOf(db clustertest.Database) *postgres.Snapshots {
	return postgres.NewSnapshots(postgres.Config{URL: db.URL})
}

func dump(t *testing.T, db clustertest.Database) []byte {
	t.Helper()
	var text bytes.Buffer
	check.NoError(t, snapshotsOf(db).Dump(t.Context(), &text, dumpedAt))
	return text.Bytes()
}

func rebuilt(ctx context.Context, db clustertest.Database, from io.Reader) (postgres.Contents, error) {
	return postgres.Rebuild(ctx, postgres.Config{URL: db.URL}, postgres.Rebuilding{
		Dump: from, At: dumpedAt, Details: audit.Details{"snapshot": "20260131T093000.000Z"},
	})
}

// column is the first column of a query's rows.
func column(t *testing.T, db *sql.DB, query string, args ...any) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	check.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		check.NoError(t, rows.Scan(&s))
		list = append(list, s)
	}
	check.NoError(t, rows.Err())
	return list
}

const everyTable = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1"

// Every table of the schema is in a snapshot, or is named with the reason why not; and what is named is there.
func TestEveryTableIsKeptOrNot(t *testing.T) {
	db := migrated(t)
	text := string(dump(t, db))
	all := column(t, db.Open(t), everyTable)
	for _, table := range all {
		reason, left := postgres.NotKept[table]
		switch kept := strings.Contains(text, `"table":"`+table+`"`); {
		case kept == left:
			t.Errorf("%s is kept: %t, and left out: %t", table, kept, left)
		case left && reason == "":
			t.Errorf("%s is left out without a reason", table)
		}
	}
	for _, table := range slices.Concat(postgres.NamedInDumps(), postgres.Restless) {
		if !slices.Contains(all, table) {
			t.Errorf("there is no table %s", table)
		}
	}
}

// References to tables of which not all rows are kept, and why what they refer to is.
var references = map[string]string{
	"operation_uses.operation_id":  "its own kept rows are those of open operations",
	"uploads.operation_id":         "an operation that something names is kept",
	"webhook_attempts.delivery_id": "its own kept rows are those of kept deliveries",
}

func TestRowsOfDumpsReferToRowsOfDumps(t *testing.T) {
	got := column(t, migrated(t).Open(t), `SELECT c.conrelid::regclass || '.' || a.attname FROM pg_constraint c
		JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
		WHERE c.contype = 'f' AND c.confrelid::regclass::text = ANY ($1) AND c.conrelid::regclass::text <> ALL ($2) ORDER BY 1`,
		pq.Array(postgres.NamedInDumps()), pq.Array(slices.Collect(maps.Keys(postgres.NotKept))))
	if want := slices.Sorted(maps.Keys(references)); !slices.Equal(got, want) {
		t.Errorf("what refers to such tables is %q, want %q", got, want)
	}
}

// fill puts into the metadata what is easily lost on the way, and what is over.
func fill(t *testing.T, db clustertest.Database) {
	t.Helper()
	populate(t, db, 1200)
	clustertest.Exec(t, db.URL,
		`UPDATE users SET name = E'a "quoted",\n(odd) \\ name, and \u00e4'`,
		`UPDATE databases SET display_name = '{}', size_bytes = 9223372036854775807 WHERE name = 'n7'`,
		`UPDATE operations SET input = E'{\n "a" : "\\n,(" }', lease_epoch = 3, lease_owner = 'w', lease_until = 'epoch',
			status = 'running' WHERE id IN (SELECT id FROM databases WHERE name = 'n7')`,
		`INSERT INTO backup_keys SELECT id, '\x00ff225c' FROM databases WHERE name = 'n7'`,
		`INSERT INTO sessions SELECT id, id, sha256('x'), 'open', 0, 'epoch', 'epoch', 'epoch', 'password', NULL, '', '', '', ''
			FROM users`,
		`INSERT INTO audit_entries (id, at, actor, action, details)
			SELECT gen_random_uuid(), '2026-01-31'::timestamptz - n * '1 day'::interval, 'x', 'a', '{}' FROM generate_series(1, 60) n`,
		`INSERT INTO outbox_events SELECT id, account_id, database_id, id, '', 'e', '{}', '2020-01-01', NULL FROM operations LIMIT 2`,
		`UPDATE outbox_events SET taken = true WHERE id = (SELECT id FROM outbox_events LIMIT 1)`,
		// One that ended long ago is named by a backup, another one by nothing.
		`UPDATE operations SET status = 'succeeded', finished_at = '2020-01-01'
			WHERE id IN (SELECT id FROM databases WHERE name IN ('n1', 'n2'))`,
		`INSERT INTO backups (database_id, filename, operation_id, trigger, format, size_bytes, checksum_sha256, created_at,
				role_manifest)
			SELECT id, 'f', id, 'manual', 'sql.gz', 1, '', 'epoch', true FROM databases WHERE name = 'n1'`,
		`SELECT setval('mail_turns', 41)`, `SELECT nextval('operation_turns')`)
}

// contents are the rows of a table, as PostgreSQL writes them.
func contents(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	return column(t, db, "SELECT t::text FROM "+pq.QuoteIdentifier(table)+" t ORDER BY 1")
}

// Metadata come back as they were, but for what is long over, what is left out, and what makes them safe to go on with.
func TestRebuild(t *testing.T) {
	source := migrated(t)
	fill(t, source)
	text := dump(t, source)
	for what, target := range map[string]clustertest.Database{"no schema": clustertest.NewDatabase(t), "the schema": migrated(t)} {
		has, err := rebuilt(t.Context(), target, iotest.HalfReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if checked := check.Must(postgres.CheckDump(bytes.NewReader(text)))(t); has != checked || has.Rows < 2400 {
			t.Errorf("%s: %+v, checked %+v", what, has, checked)
		}
		was, is := source.Open(t), target.Open(t)
		for _, table := range column(t, was, everyTable) {
			if _, left := postgres.NotKept[table]; left || slices.Contains([]string{
				"databases", "operations", "audit_entries", "outbox_events",
			}, table) {
				continue
			}
			if !slices.Equal(contents(t, is, table), contents(t, was, table)) {
				t.Errorf("%s: the rows of %s are others", what, table)
			}
		}
		for query, want := range map[string]string{
			"SELECT count(*) FROM databases WHERE allowlist_generation = 1 AND settings_generation = 1":     "1200",
			"SELECT display_name || size_bytes FROM databases WHERE name = 'n7'":                            "{}9223372036854775807",
			"SELECT count(*) FROM operations":                                                               "1199",
			"SELECT count(*) FROM operations WHERE finished_at IS NULL AND lease_epoch < 1000000":           "0",
			"SELECT o.input::text FROM operations o JOIN databases d USING (id) WHERE d.name = 'n7'":        "{\n \"a\" : \"\\n,(\" }",
			"SELECT count(*) FROM operations WHERE input::text = 'null' AND status = 'queued'":              "1197",
			"SELECT count(*) FROM operation_lanes":                                                          "1",
			"SELECT count(*) FROM sessions":                                                                 "0",
			"SELECT count(*) FROM outbox_events":                                                            "1",
			"SELECT count(*) FROM audit_entries WHERE action = 'a'":                                         "29",
			"SELECT details->>'snapshot' FROM audit_entries WHERE action = 'metadata.rebuilt'":              "20260131T093000.000Z",
			"SELECT nextval('mail_turns') || ' ' || nextval('operation_turns') || nextval('webhook_turns')": "42 21",
		} {
			if got := column(t, is, query); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s: %q, want %q", what, query, got, want)
			}
		}
		check.NoError(t, open(t, target).Ping(t.Context()))
	}
}

func wantNothing(t *testing.T, what string, db clustertest.Database) {
	t.Helper()
	on := db.Open(t)
	for _, table := range column(t, on, everyTable) {
		if slices.Contains([]string{"goose_db_version", "oldest_program", "installation"}, table) {
			continue
		}
		if rows := contents(t, on, table); len(rows) > 0 {
			t.Errorf("%s: there are %d rows in %s", what, len(rows), table)
		}
	}
}

// What is no whole dump changes nothing, nor does one that breaks off; then it can be done again.
func TestRebuildOfNoDump(t *testing.T) {
	source, target := migrated(t), migrated(t)
	fill(t, source)
	text := dump(t, source)
	broken := errors.New("broken")
	lines := bytes.SplitAfter(text, []byte("\n"))
	without := func(gone int) io.Reader {
		return bytes.NewReader(bytes.Join(slices.Delete(slices.Clone(lines), gone, gone+1), nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	for what, c := range map[string]struct {
		ctx  context.Context
		from io.Reader
		want error
	}{
		"nothing":        {t.Context(), strings.NewReader(""), postgres.ErrNoDump},
		"another text":   {t.Context(), strings.NewReader("hello"), postgres.ErrNoDump},
		"half of it":     {t.Context(), bytes.NewReader(text[:len(text)/2]), postgres.ErrNoDump},
		"not the end":    {t.Context(), without(len(lines) - 2), postgres.ErrNoDump},
		"not the schema": {t.Context(), without(0), postgres.ErrNoDump},
		"not some rows": {t.Context(), without(slices.IndexFunc(lines, func(l []byte) bool {
			return bytes.HasPrefix(l, []byte(`{"rows"`))
		})), postgres.ErrNoDump},
		"more":          {t.Context(), io.MultiReader(bytes.NewReader(text), strings.NewReader("{}")), postgres.ErrNoDump},
		"no good end":   {t.Context(), io.MultiReader(bytes.NewReader(text), iotest.ErrReader(broken)), broken},
		"it breaks off": {t.Context(), io.MultiReader(bytes.NewReader(text[:len(text)/2]), iotest.ErrReader(broken)), broken},
		"killed":        {ctx, &canceling{Reader: bytes.NewReader(text), left: len(text) / 2, cancel: cancel}, context.Canceled},
		"newer": {t.Context(), strings.NewReader(strings.Replace(string(text), `{"schema":`, `{"schema":99`, 1)),
			postgres.ErrSchemaNewer},
	} {
		if _, err := rebuilt(c.ctx, target, c.from); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		wantNothing(t, what, target)
	}
	check.Must(rebuilt(t.Context(), target, bytes.NewReader(text)))(t)
	if _, err := rebuilt(t.Context(), target, bytes.NewReader(text)); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("again: %v", err)
	}
	others := clustertest.NewDatabase(t)
	clustertest.Exec(t, others.URL, "CREATE TABLE somebodys (n int)")
	if _, err := rebuilt(t.Context(), others, bytes.NewReader(text)); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("into a database of others: %v", err)
	}
}

// canceling ends a context once so much was read.
type canceling struct {
	io.Reader
	left   int
	cancel func()
}

func (c *canceling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p[:min(len(p), 1<<10)])
	if c.left -= n; c.left < 0 {
		c.cancel()
	}
	return n, err
}

// One takes a snapshot at a time, and what has changed is told.
func TestTurnsAndChanges(t *testing.T) {
	db := migrated(t)
	s := snapshotsOf(db)
	var inner bool
	mine, err := s.Turn(t.Context(), func(ctx context.Context) (err error) {
		inner, err = s.Turn(ctx, func(context.Context) error { return nil })
		return err
	})
	if err != nil || !mine || inner {
		t.Errorf("%t, %t, %v", mine, inner, err)
	}
	if mine, err = s.Turn(t.Context(), func(context.Context) error { return nil }); err != nil || !mine {
		t.Errorf("afterwards: %t, %v", mine, err)
	}
	populate(t, db, 1)
	settled := func() (mark string) {
		check.Eventually(t, "nothing more is counted", func() bool {
			before := mark
			mark = check.Must(s.Changes(t.Context()))(t)
			return mark == before
		})
		return mark
	}
	before := settled()
	clustertest.Exec(t, db.URL, "UPDATE servers SET answered_at = 'epoch'")
	if after := settled(); after != before {
		t.Errorf("%q became %q, for an answer of a server", before, after)
	}
	clustertest.Exec(t, db.URL, "UPDATE databases SET display_name = 'new'")
	check.Eventually(t, "a change is told", func() bool { return check.Must(s.Changes(t.Context()))(t) != before })
}

// What has no end is no dump of the metadata.
func FuzzCheckDump(f *testing.F) {
	whole := `{"schema":1}{"table":"t","columns":["a"]}{"rows":["(1)"]}{"count":1}{"sequence":"s","value":1}` +
		`{"end":{"tables":1,"rows":1}}`
	f.Add(whole)
	for i := range whole {
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, text string) {
		has, err := postgres.CheckDump(strings.NewReader(text))
		switch {
		case err == nil && !strings.Contains(text, `"end"`) && !strings.Contains(strings.ToLower(text), "end"):
			t.Errorf("%q has no end: %+v", text, has)
		case err != nil && !errors.Is(err, postgres.ErrNoDump):
			t.Errorf("%q: %v", text, err)
		}
	})
}
