package backup_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// The tables t, moved, quick and child have 100 rows each at any time, with the number that g has.
const numbered = `CREATE TABLE g (n int); INSERT INTO g VALUES (0);
	CREATE TABLE t (id int PRIMARY KEY, n int, x varchar(50)); CREATE TABLE moved (id int, n int);
	CREATE UNLOGGED TABLE quick (id int, n int); CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM t;
	CREATE TABLE parent (id int, n int) PARTITION BY LIST (id); CREATE TABLE child PARTITION OF parent FOR VALUES IN (1);
	CREATE SEQUENCE counter; CREATE VIEW v AS SELECT id FROM t;
	CREATE SCHEMA live; CREATE SCHEMA next; CREATE TABLE live.s (n int); CREATE TABLE live.u (n int);
	CREATE TABLE next.s (n int); CREATE TABLE next.u (n int); INSERT INTO next.s VALUES (1); INSERT INTO next.u VALUES (1);
	CREATE PROCEDURE fill() LANGUAGE sql AS $$
		UPDATE g SET n = n + 1;
		INSERT INTO t SELECT i, n, 'x' FROM g, generate_series(1, 100) i; INSERT INTO moved SELECT id, n FROM t;
		INSERT INTO quick SELECT id, n FROM t; INSERT INTO parent SELECT 1, n FROM t $$;
	CALL fill()`

// writesAnew are transactions that write tables anew, or change what goes by name.
var writesAnew = []string{
	`TRUNCATE t, moved, quick, parent; CALL fill()`,
	`TRUNCATE t, moved, quick, parent RESTART IDENTITY; CALL fill(); ALTER SEQUENCE counter RESTART`,
	`DELETE FROM t; DELETE FROM moved; DELETE FROM quick; DELETE FROM parent; CALL fill(); SELECT nextval('counter')`,
	`ALTER TABLE t ALTER n TYPE bigint USING n + 1, ALTER x TYPE text; UPDATE moved SET n = n + 1; UPDATE quick SET n = n + 1;
		UPDATE parent SET n = n + 1; UPDATE g SET n = n + 1`,
	`ALTER TABLE t ALTER n TYPE int, ALTER x TYPE varchar(50)`,
	`CLUSTER t USING t_pkey`,
	`VACUUM FULL moved`,
	`REFRESH MATERIALIZED VIEW m`,
	`ALTER TABLE quick SET LOGGED`,
	`ALTER TABLE quick SET UNLOGGED`,
	`DROP TABLE moved; CREATE TABLE moved AS SELECT id, n::int FROM t`,
	`ALTER TABLE parent DETACH PARTITION child; ALTER TABLE parent ATTACH PARTITION child FOR VALUES IN (1)`,
	`DROP VIEW v; CREATE VIEW v AS SELECT id FROM t`,
	`ALTER SCHEMA live RENAME TO last; ALTER SCHEMA next RENAME TO live; ALTER SCHEMA last RENAME TO next`,
	`DROP FUNCTION IF EXISTS f(); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
	`CREATE TEMP TABLE passing (id serial PRIMARY KEY, n int REFERENCES pg_temp.passing); CREATE TYPE pg_temp.mood AS ENUM ('good');
		CREATE STATISTICS pg_temp.st ON id, n FROM passing; DROP TABLE passing; DROP TYPE pg_temp.mood`,
	`SELECT lo_unlink(oid) FROM pg_largeobject_metadata; SELECT lo_from_bytea(0, n::text::bytea) FROM g, generate_series(1, 3)`,
}

// A backup holds every row, of one moment between two commits, whatever others write anew; or it says what was in the way. "make
// check" makes 200, while they do so ten times a second.
func TestABackupHoldsEveryRowWhileTablesAreWrittenAnew(t *testing.T) {
	w := newWorld(t)
	w.Load(numbered)
	whole, pause, many := 0, 500*time.Millisecond, 3
	if sample.Whole() {
		pause, many = 100*time.Millisecond, 200
	}
	ctx, stop := context.WithCancel(t.Context())
	var longest atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		longest.Store(int64(writeAnew(ctx, t, w, pause)))
	}()
	for range many {
		if w.backsUpWhole() {
			whole++
		}
	}
	stop()
	<-ended
	t.Logf("%d of %d are whole; the longest transaction of others took %s", whole, many, time.Duration(longest.Load()))
	if whole == 0 {
		t.Error("none is whole")
	}
	w.LeavesNothing()
}

// writeAnew writes until ctx ends, and returns how long the longest transaction took.
func writeAnew(ctx context.Context, t *testing.T, w *world, pause time.Duration) (longest time.Duration) {
	db := clustertest.Database{URL: w.Patient("shop")}.Open(t)
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := db.Exec(writesAnew[rand.IntN(len(writesAnew))]); err != nil {
			t.Errorf("who writes: %v", err)
		}
		longest = max(longest, time.Since(began))
		time.Sleep(pause - time.Since(began))
	}
	return longest
}

// backsUpWhole makes a backup, and reports whether there is one then.
func (w *world) backsUpWhole() bool {
	t := w.T
	result, err := w.Run(w.Agent, w.Request())
	if fault.Has(err, fault.BackupConflict) {
		t.Log(err)
		return false
	}
	if err != nil || result.VerifiedAt == nil {
		t.Fatalf("verified at %v, %v", result.VerifiedAt, err)
	}
	rows := copied(w.Text())
	number := rows["public.g"][0]
	for table, column := range map[string]int{"public.t": 1, "public.moved": 1, "public.quick": 1, "public.child": 1} {
		if len(rows[table]) != 100 {
			t.Errorf("%d rows of %s", len(rows[table]), table)
		}
		for _, row := range rows[table] {
			if got := strings.Split(row, "\t")[column]; got != number {
				t.Fatalf("%s has %s, and g has %s", table, got, number)
			}
		}
	}
	if len(rows["live.s"]) != len(rows["live.u"]) || len(rows["live.s"])+len(rows["next.s"]) != 1 {
		t.Errorf("schemas are mixed up: %v", rows)
	}
	check.NoError(t, w.Agent.Discard(t.Context(), w.Request()))
	return true
}

// copied are the rows of a dump's tables.
func copied(dump string) map[string][]string {
	rows, table := map[string][]string{}, ""
	for line := range strings.Lines(dump) {
		line = strings.TrimSuffix(line, "\n")
		name, isCopy := strings.CutPrefix(line, "COPY ")
		switch {
		case isCopy && table == "":
			table, _, _ = strings.Cut(name, " ")
		case line == `\.`:
			table = ""
		case table != "":
			rows[table] = append(rows[table], line)
		}
	}
	return rows
}

// Whoever waits for a dump waits a short time: the dump begins anew. Who keeps on waiting keeps it from its end, and is named.
func TestADumpGivesWayToWhoWaitsForIt(t *testing.T) {
	for name, c := range map[string]struct {
		slow int // how many tries take long
		want string
	}{
		"once": {1, ""}, "again and again": {100, "other sessions waited for what the dump reads (public.t)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(`CREATE TABLE t (n int); INSERT INTO t VALUES (1)`)
			db, tries, waited := w.Open(t), 0, time.Duration(0)
			w.Agent.Crash = func(point string) {
				if point != "backup.after-snapshot" {
					return
				}
				if tries++; tries <= c.slow {
					began := time.Now()
					check.Must(db.Exec(`TRUNCATE t; INSERT INTO t VALUES (1)`))(t)
					waited = max(waited, time.Since(began))
				}
			}
			result, err := w.Run(w.Agent, w.Request())
			switch {
			case c.want != "":
				if !fault.Has(err, fault.BackupConflict) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it ended with %v", err)
				}
			case err != nil || result.Manifest.Contents.Rows["public.t"] != 1:
				t.Errorf("it has %v, %v", result.Manifest.Contents.Rows, err)
			}
			t.Logf("who waited longest waited %s", waited)
			if waited > 3*time.Second { // less than a second, where nothing else has to be done
				t.Errorf("who waited longest waited %s", waited)
			}
			w.LeavesNothing()
		})
	}
}

// A role may make its first large object when the login of the dump, which can read those of some roles, has just been made.
func TestABackupHoldsTheFirstLargeObjectOfARole(t *testing.T) {
	w := newWorld(t)
	db := clustertest.Database{URL: w.Patient("shop")}.Open(t)
	w.Agent.Crash = func(point string) {
		if point == "backup.after-login" {
			check.Must(db.Exec("SELECT lo_from_bytea(0, 'late')"))(t)
		}
	}
	result := w.Backup(w.Request())
	if n := result.Manifest.Contents.LargeObjects; n != 1 || result.VerifiedAt == nil {
		t.Errorf("%d large objects, verified at %v", n, result.VerifiedAt)
	}
	w.LeavesNothing()
}

// What a dump reads as it is now, and not as its snapshot sees it, must not have changed meanwhile; other things may.
func TestWhatDisturbsADump(t *testing.T) {
	w := newWorld(t)
	w.Load(numbered + `; CREATE TYPE mood AS ENUM ('good'); CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`)
	conn := check.Must(clustertest.Database{URL: w.Patient("shop")}.Open(t).Conn(t.Context()))(t)
	for statements, disturbs := range map[string]bool{
		"INSERT INTO t SELECT 1000 + i, 1, 'y' FROM generate_series(1, 100) i":     false,
		"SELECT nextval('counter'), setval('counter', 7)":                          false,
		"CREATE TABLE fresh (n int); DROP TABLE fresh":                             false,
		"CREATE OR REPLACE VIEW v AS SELECT id, n FROM t":                          false,
		"DROP TABLE IF EXISTS passing; DROP TYPE IF EXISTS pg_temp.passes":         false,
		"ALTER SEQUENCE counter RESTART":                                           true,
		"DROP FUNCTION f(); CREATE FUNCTION f() RETURNS int LANGUAGE sql RETURN 1": true,
		"DROP VIEW v; CREATE VIEW v AS SELECT id FROM t":                           true,
		"ALTER TYPE mood RENAME TO moods; ALTER TYPE moods RENAME TO mood":         true,
		"ALTER TYPE mood RENAME VALUE 'good' TO 'fair'":                            true,
		"ALTER SCHEMA live RENAME TO last; ALTER SCHEMA last RENAME TO live":       true,
		"CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql RETURN 2":         true,
	} {
		run := func(statements string) { check.Must(conn.ExecContext(t.Context(), statements))(t) }
		run("CREATE TEMP TABLE IF NOT EXISTS passing (id serial PRIMARY KEY, n int REFERENCES passing)")
		run("CREATE TYPE pg_temp.passes AS ENUM ('yes')")
		once := func() { run(statements) }
		w.Agent.Crash = func(point string) {
			if point == "backup.after-snapshot" {
				once()
				once = func() {}
			}
		}
		req := w.Request()
		req.Verify = false
		result, err := w.Run(w.Agent, req)
		if err != nil || (result.Manifest.Snapshot.Tries > 1) != disturbs || result.Manifest.Snapshot.LockedTables < 10 {
			t.Errorf("%s: %+v, %v", statements, result.Manifest.Snapshot, err)
		}
		check.NoError(t, w.Agent.Discard(t.Context(), req))
		run("DROP TYPE IF EXISTS pg_temp.passes")
	}
	w.Agent.Crash = func(string) {}
	w.LeavesNothing()
}
