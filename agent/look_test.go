package agent_test

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// looking is an agent with a database and two moments of it.
type looking struct {
	archived
	from, to time.Time
	owner    *sql.DB
	log      *observer.ObservedLogs // of the agent, where it runs in this process
}

func lookingAt(t *testing.T) *looking {
	t.Helper()
	x := &looking{archived: archived{Stack: agenttest.Archived(t)}}
	_, x.log, _ = x.Started(t.Context(), t)
	x.StartBouncer(t.Context(), t)
	x.begin(t)
	x.owner = x.Owner(t, x.of)
	return x
}

// now is a moment apart from whatever is written before it and after it.
func (x *looking) now(t *testing.T) (at time.Time) {
	t.Helper()
	check.Must(x.owner.Exec("SELECT pg_sleep(0.05)"))(t)
	check.NoError(t, x.owner.QueryRow("SELECT clock_timestamp()").Scan(&at))
	check.Must(x.owner.Exec("SELECT pg_sleep(0.05)"))(t)
	return at.UTC()
}

// finding is a search for a moment.
func (x *looking) finding(query, until string) command.FindMoment {
	return command.FindMoment{
		DatabaseID: x.of.DatabaseID(), From: x.from, To: x.to,
		Question: recovery.Question{Query: query, Until: until, Key: bytes.Repeat([]byte("k"), recovery.KeyBytes)},
	}
}

// found is what has become of a search, with its result opened.
type found struct {
	command.Look
	Result *recovery.SearchResult
}

func (x *looking) outcome(t *testing.T, find protocol.Command, of recovery.Question) found {
	t.Helper()
	r := agenttest.Outcome(t, x.Stack, find, func(r command.SearchReport) bool { return r.State != command.LookRunning })
	f := found{Look: r.Look}
	if r.Sealed != nil {
		f.Result = new(check.Must(of.Open(id.OperationID(find.OperationID), r.Sealed))(t))
	}
	return f
}

func (x *looking) find(t *testing.T, query, until string) found {
	t.Helper()
	find := x.finding(query, until)
	return x.outcome(t, agenttest.Told(agenttest.NewUUID(), 1, find), find.Question)
}

// hides fails the test where a text stands in any row of the ledger.
func (x *looking) hides(t *testing.T, texts ...string) {
	t.Helper()
	const tables = "SELECT format('ledger.%I', tablename) FROM pg_tables WHERE schemaname = 'ledger'"
	for _, table := range check.Must(pg.Column(t.Context(), x.Super, tables))(t) {
		for _, text := range texts {
			var holds bool
			look := "SELECT EXISTS (SELECT FROM " + table + " t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0)"
			check.NoError(t, x.Super.QueryRow(look, text, hex.EncodeToString([]byte(text))).Scan(&holds))
			if holds {
				t.Errorf("%s holds %q", table, text)
			}
		}
	}
}

// How two moments differ is seen in one server beside, which goes on from the first to the second.
func TestMomentsAreCompared(t *testing.T) {
	t.Parallel()
	x := lookingAt(t)
	check.Must(x.owner.Exec(`CREATE FUNCTION trap(anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
			IF session_user <> current_database() THEN RAISE EXCEPTION 'trapped %', session_user; END IF; RETURN true; END $$;
		CREATE SCHEMA app; CREATE TABLE app.gone (); CREATE TABLE parts (n int) PARTITION BY RANGE (n);
		CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (10); INSERT INTO parts SELECT generate_series(0, 9);
		CREATE TABLE trapped AS SELECT 1 AS n; CREATE INDEX ON trapped ((n + 1)) WHERE trap(n)`))(t)
	if agenttest.Major() >= 18 { // which lets who owns a table say how many rows it has
		check.Must(x.owner.Exec(`SELECT pg_restore_relation_stats(
			'schemaname', 'public', 'relname', 'things', 'reltuples', 'NaN'::real)`))(t)
	}
	x.from = x.now(t)
	check.Must(x.owner.Exec(`DROP TABLE app.gone; CREATE TABLE new AS SELECT 1 AS n; DELETE FROM parts WHERE n < 4;
		ALTER TABLE trapped ADD body text; INSERT INTO things (name) VALUES ('more')`))(t)
	x.to = x.now(t)
	check.Must(x.owner.Exec(`DELETE FROM parts; INSERT INTO things (name) VALUES ('later')`))(t)
	r := agenttest.Outcome(t, x.Stack, agenttest.Told(agenttest.NewUUID(), 1, command.CompareMoments{
		DatabaseID: x.of.DatabaseID(), From: x.from, To: x.to,
	}), func(r command.ComparisonReport) bool { return r.State != command.LookRunning })
	if r.State != command.LookDone {
		t.Fatalf("%+v", r)
	}
	var got []string
	for _, d := range r.Comparison.Tables {
		line := d.Table + " " + string(d.Change)
		for _, c := range []*recovery.Count{d.Before, d.After} {
			if c != nil {
				line += fmt.Sprint(" ", c.Rows, c.Estimated)
			}
		}
		for _, c := range d.Columns {
			line += " " + c.Name
		}
		got = append(got, line)
	}
	want := "app.gone dropped 0 false, new added 1 false, parts rows 10 false 6 false, things rows 2001 false 2002 false, " +
		"trapped altered 1 false 1 false body"
	if strings.Join(got, ", ") != want {
		t.Errorf("they differ by %q", got)
	}
}

// The second of a change is found, also of a table that was made in between, and hostile queries do nothing and end.
func TestAMomentIsFound(t *testing.T) {
	t.Parallel()
	x := lookingAt(t)
	super := x.SuperIn(t, x.of)
	check.Must(super.Exec("CREATE EXTENSION IF NOT EXISTS dblink"))(t)
	check.Must(x.owner.Exec("CREATE FUNCTION wrong() RETURNS int LANGUAGE sql AS 'SELECT count(*)::int FROM things'"))(t)
	x.from = x.now(t)
	for n := range 6 {
		time.Sleep(time.Second)
		check.Must(x.owner.Exec("INSERT INTO things (name) VALUES ($1)", fmt.Sprint("row", n)))(t)
		if n == 2 {
			check.Must(x.owner.Exec("CREATE TABLE late AS SELECT 5 AS n"))(t)
		}
	}
	x.to = x.now(t)
	for query, want := range map[string]struct{ until, answer string }{
		"SELECT count(*) FROM things; ":         {">= 2004", "2004"},
		"SELECT n FROM late -- made in between": {"= 5", "5"},
	} {
		r := x.find(t, query, want.until)
		if r.State != command.LookDone || r.Result.Outcome != recovery.Changed {
			t.Errorf("%s: %+v", query, r)
			continue
		}
		span := r.Result.Since.Sub(*r.Result.NotYet)
		for _, l := range r.Result.Looks {
			if l.At.Equal(*r.Result.Since) && (l.Text == nil || *l.Text != want.answer) || l.Holds != !l.At.Before(*r.Result.Since) {
				t.Errorf("%s: %+v", query, l)
			}
		}
		if span > time.Second || r.Result.NotYet.Sub(x.from) < time.Second {
			t.Errorf("%s: it is between %s and %s", query, r.Result.NotYet, r.Result.Since)
		}
	}
	if r := x.find(t, "WITH w AS (SELECT 1 AS n) SELECT n FROM w", "= 1"); r.Result == nil || r.Result.Outcome != recovery.Always {
		t.Errorf("%+v", r)
	}

	// The owner may not even know where the server is reached; see also Side.onlyOwners.
	const linked = `SELECT 1 FROM
		dblink('host=' || current_setting('unix_socket_directories') || ' dbname=postgres', 'SELECT 1') AS d (n int)`
	for query, why := range map[string]string{
		"SELECT 1; SELECT 2":       "42601",
		"SELECT 1, 2":              "gives 2",
		"SELECT 1 WHERE false":     "none",
		"SELECT repeat('x', 1001)": "1000 characters",
		"SELECT pg_catalog.set_config('transaction_read_only', 'off', true)": "25001",
		"SELECT lo_create(0)":                "25006",
		"SELECT pg_read_file('/etc/passwd')": "42501",
		linked:                               "42501",
		"SELECT count(*) FROM (SELECT n FROM generate_series(1, 200000000) AS n ORDER BY n DESC) AS s": "too large files",
	} {
		r := x.find(t, query, "= 1000000")
		if r.State != command.LookFailed || r.Reason != command.ReasonInvalid || r.Field != "query" ||
			!strings.Contains(r.Message, why) {
			t.Errorf("%s: %+v, %+v", query, r.Look, r.Result)
		}
	}
}

// Query and answers are nowhere but in the report, which only who has asked can read; and what code of the customer's says in the
// server's log is not taken for what the server says.
func TestAnswersAreForWhoHasAsked(t *testing.T) {
	t.Parallel()
	x := lookingAt(t)
	check.Must(x.owner.Exec(`CREATE FUNCTION noisy() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			FOR n IN 1 .. 3 LOOP RAISE WARNING E'database system is ready to accept connections\nFATAL:  canary'; END LOOP;
			RETURN 1; END $$;
		CREATE FUNCTION broken() RETURNS int LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'canary of an error' USING ERRCODE = 'XX001'; END $$`))(t)
	x.from = x.now(t)
	x.to = x.now(t)
	for query, until := range map[string]string{
		"SELECT 'canary of an ' || 'answer'::text -- canary of a query": "= 'canary of an answer'",
		"SELECT noisy()": "= 1",
	} {
		if r := x.find(t, query, until); r.Result == nil || r.Result.Outcome != recovery.Always {
			t.Errorf("%s: %+v", query, r)
		}
	}
	if r := x.find(t, "SELECT broken()", "= 1"); r.State != command.LookFailed || r.Result != nil ||
		strings.Contains(r.Message, "canary") {
		t.Errorf("%+v", r)
	}
	x.hides(t, "canary of an answer", "canary of a query", "canary of an error")
	failed := false
	for _, e := range x.log.All() {
		line := fmt.Sprint(e.Message, e.ContextMap())
		failed = failed || strings.Contains(line, "SQLSTATE XX001")
		if strings.Contains(line, "canary") {
			t.Errorf("the log has %s", line)
		}
	}
	if !failed {
		t.Error("the log does not say that the query has failed")
	}
}

// An agent that is killed over a search leaves nothing, and its successor begins it anew.
func TestKilledOverALook(t *testing.T) {
	for _, point := range agenttest.PointsOf(t, "look") {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			x := &looking{archived: archived{Stack: agenttest.Archived(t)}}
			c := x.Child(t, "")
			x.StartBouncer(t.Context(), t)
			x.begin(t)
			x.owner = x.Owner(t, x.of)
			x.from, x.to = x.at.UTC(), x.now(t)
			c.Kill()
			search := x.finding("SELECT count(*) FROM things WHERE name = 'after'", "> 0")
			find := agenttest.Told(agenttest.NewUUID(), 1, search)
			x.Child(t, point).DiesOver(t, x.Stack, find)
			x.Child(t, "")
			r := x.outcome(t, find, search.Question)
			if r.State != command.LookDone || r.Result.Outcome != recovery.Changed {
				t.Errorf("%+v", r)
			}
			if left := check.Must(os.ReadDir(filepath.Join(x.Config.BackupDir, "archive", "beside")))(t); len(left) != 0 {
				t.Errorf("%d folders are left", len(left))
			}
		})
	}
}
