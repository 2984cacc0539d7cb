package statements_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// ownStack is a stack of the test's own, with an agent: what is collected is of the whole server.
func ownStack(t *testing.T, settings map[string]string) (*agenttest.Stack, *observer.ObservedLogs) {
	t.Helper()
	s := agenttest.New(t, clustertest.New(t, settings), t.TempDir())
	_, log, _ := s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	return s, log
}

func asked(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, o slowquery.Order) (list command.SlowQueryList) {
	t.Helper()
	status, text, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/slow-queries/"+string(o), nil)
	if check.NoError(t, err); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	check.NoError(t, json.Unmarshal(text, &list))
	return list
}

func backedUp(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) {
	t.Helper()
	c, report := w.Backup(agenttest.NewUUID(), "20260301_120000.sql.gz", true), command.BackupReport{}
	check.Eventually(t, "the backup does not end", func() bool {
		check.NoError(t, json.Unmarshal(s.Done(t, c), &report))
		return report.State != command.BackupRunning
	})
	if report.State != command.BackupDone {
		t.Errorf("%+v", report)
	}
}

func textsOf(list command.SlowQueryList) (texts []string) {
	for _, one := range list.Statements {
		texts = append(texts, one.Username+": "+one.Text)
	}
	return texts
}

// A list has what the database's own logins have run there, and nothing of the service's, of others, or of an administrator.
func TestOnlyTheDatabasesOwn(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, nil)
	w, other := s.Made(t, database.Managed), s.Made(t, database.Managed)
	began := time.Now()
	check.Must(s.Super.Exec("SELECT server.pg_stat_statements_reset()"))(t)
	owner := s.Owner(t, w)
	for _, statement := range []string{
		"CREATE TABLE t (a int, b text)", "INSERT INTO t VALUES (1, 'secret')", "INSERT INTO t VALUES (2, 'other')",
		"SELECT pg_sleep(0.05), b FROM t WHERE a = 1 -- secret", "ALTER ROLE CURRENT_USER PASSWORD 'secret'",
		"SET app.key = 'secret'", "DO $$ BEGIN PERFORM 'secret'; END $$", "CREATE EXTENSION citext",
	} {
		check.Must(owner.Exec(statement))(t)
	}
	runtime, password := w.Login(database.RuntimeLogin)
	check.Must(s.Pooled(t, w.Name+".transaction", runtime, password).Exec("SELECT sum(a) FROM t"))(t)
	check.Must(s.Owner(t, other).Exec("SELECT 'of another' AS x"))(t)
	check.Must(s.SuperIn(t, w).Exec("SELECT 'of an administrator' AS x"))(t)

	list := asked(t, s, w, slowquery.ByTotal)
	if !list.Collected || list.Evicted || list.Since.Before(began.Add(-time.Second)) || time.Since(list.Since) > time.Minute {
		t.Errorf("%+v", list)
	}
	want := []string{
		w.Name + ": CREATE TABLE t (a int, b text)", w.Name + ": INSERT INTO t VALUES ($1, $2)",
		w.Name + ": SELECT pg_sleep($1), b FROM t WHERE a = $2", runtime + ": SELECT sum(a) FROM t",
	}
	if got := slices.Sorted(slices.Values(textsOf(list))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	slept := list.Statements[0]
	if !strings.Contains(slept.Text, "pg_sleep") || slept.Calls != 1 || slept.Rows != 1 || slept.TotalMs < 50 ||
		slept.MeanMs != slept.TotalMs || slept.MaxMs != slept.TotalMs || slept.ID == "" {
		t.Errorf("%+v", slept)
	}
	if first := asked(t, s, w, slowquery.ByCalls).Statements[0]; first.Calls != 2 || first.Rows != 2 {
		t.Errorf("%+v", first)
	}
}

// The service's own statements take nobody's place: neither those of the agent and of PgBouncer nor those of a dump.
func TestTheServiceIsNotCounted(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, nil)
	check.Must(s.Super.Exec("SELECT server.pg_stat_statements_reset()"))(t)
	w := s.Made(t, database.Managed)
	check.Must(s.Owner(t, w).Exec("CREATE TABLE t AS SELECT generate_series(1, 100) AS a"))(t)
	backedUp(t, s, w)
	const others = `SELECT coalesce(string_agg(coalesce(r.rolname, '?') || ': ' || s.query, E'\n'), '')
		FROM server.pg_stat_statements s LEFT JOIN pg_roles r ON r.oid = s.userid
		WHERE r.rolname IS DISTINCT FROM 'postgres' AND r.oid NOT IN (SELECT oid FROM ledger.role)`
	if got := s.One(t, others); got != "" {
		t.Errorf("counted:\n%s", got)
	}
}

// A customer can neither read nor end the collection, nor keep out of it.
func TestCustomersHaveNoHandInIt(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	owner := s.Owner(t, w)
	for _, statement := range []string{
		"CREATE EXTENSION pg_stat_statements", "SET pg_stat_statements.track = 'none'", "SET pg_stat_statements.track_utility = off",
		"ALTER ROLE CURRENT_USER SET pg_stat_statements.track = 'none'", "SET compute_query_id = off",
		"CREATE FUNCTION r() RETURNS void LANGUAGE c AS '$libdir/pg_stat_statements', 'pg_stat_statements_reset_1_7'",
	} {
		agenttest.Denied(t, "the owner", owner, statement)
	}
}

// distinct are statements that differ in more than constants, each with a comment of so many bytes.
func distinct(from, to, bytes int) string {
	var text strings.Builder
	for i := from; i < to; i++ {
		text.WriteString("SELECT 1.0")
		for bit := range 16 {
			text.WriteString([]string{"-1.0", "+1.0"}[i>>bit&1])
		}
		fmt.Fprintf(&text, " /*%s*/;", strings.Repeat("x", bytes))
	}
	return text.String()
}

// A customer who runs very many statements pushes out those of others that ran seldom, and they are told that some are missing.
func TestManyStatementsPushOthersOut(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, map[string]string{"pg_stat_statements.max": "100"})
	w, flood := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	check.Must(s.Super.Exec("SELECT server.pg_stat_statements_reset()"))(t)
	quiet := s.Owner(t, w)
	check.Must(quiet.Exec("SELECT 1"))(t)
	for range 200 {
		check.Must(quiet.Exec("SELECT 1 + 1"))(t)
	}
	if list := asked(t, s, w, slowquery.ByTotal); list.Evicted || len(list.Statements) != 2 {
		t.Errorf("before: %+v", list)
	}
	check.Must(s.Owner(t, flood).Exec(distinct(0, 400, 0)))(t)
	list := asked(t, s, w, slowquery.ByTotal)
	if texts := textsOf(list); !list.Evicted || !slices.Equal(texts, []string{w.Name + ": SELECT $1 + $2"}) {
		t.Errorf("afterwards: %+v", list)
	}
	if n := len(asked(t, s, flood, slowquery.ByTotal).Statements); n != slowquery.Most {
		t.Errorf("%d of the customer's own", n)
	}
}

// A constant that PostgreSQL has kept, since it had forgotten the statement when that ended, is not shown.
func TestConstantsThatPostgresKeeps(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, map[string]string{"pg_stat_statements.max": "100"})
	w := s.Made(t, database.SingleLogin)
	ended := make(chan error, 1)
	slow, flood := s.Owner(t, w), s.Owner(t, w)
	lock := check.Must(flood.Begin())(t)
	check.Must(lock.Exec("SELECT pg_advisory_xact_lock(1)"))(t)
	go func() {
		_, err := slow.Exec("SELECT pg_advisory_lock(1), 'secret' AS kept")
		ended <- err
	}()
	check.Eventually(t, "the slow statement does not wait", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "1"
	})
	check.Must(lock.Exec(distinct(0, 2000, 0)))(t)
	check.NoError(t, lock.Commit())
	check.NoError(t, <-ended)
	const query = "SELECT query FROM server.pg_stat_statements WHERE query LIKE '%AS kept'"
	if kept := s.One(t, query); !strings.Contains(kept, "secret") {
		t.Errorf("PostgreSQL has %q", kept)
	}
	texts := textsOf(asked(t, s, w, slowquery.ByMean))
	if want := w.Name + ": SELECT pg_advisory_lock(?), ? AS kept"; !slices.Contains(texts, want) {
		t.Errorf("%q is not among %q", want, texts)
	}
}

// Texts that take too much room are forgotten, whoever has made them so long, and what comes later is counted.
func TestTextsStaySmall(t *testing.T) {
	t.Parallel()
	s, log := ownStack(t, nil)
	w := s.Made(t, database.SingleLogin)
	owner := s.Owner(t, w)
	before := asked(t, s, w, slowquery.ByTotal).Since
	for i := range 16 {
		check.Must(owner.Exec(distinct(i, i+1, 8<<20)))(t)
	}
	check.Eventually(t, "the texts stay", func() bool {
		small := s.One(t, "SELECT server.statement_texts() <= 64 * 1024 * 1024") == "true"
		return small && asked(t, s, w, slowquery.ByTotal).Since.After(before)
	})
	check.Must(owner.Exec("SELECT 'later' AS later"))(t)
	list := asked(t, s, w, slowquery.ByTotal)
	if !slices.Contains(textsOf(list), w.Name+": SELECT $1 AS later") {
		t.Errorf("%q", textsOf(list))
	}
	if n := log.FilterMessage("the statements of all databases are counted anew").Len(); n == 0 {
		t.Errorf("%d lines in the log", n)
	}
}

// One text that cannot be read, which a database without an encoding may have, keeps nobody from theirs for long.
func TestATextWithoutAnEncoding(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, nil)
	w := s.Made(t, database.SingleLogin)
	clustertest.Exec(t, s.PG.URL("postgres"), "CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
	bytes := check.Must(pgconn.Connect(t.Context(), s.PG.URL("bytes")+"&client_encoding=SQL_ASCII"))(t)
	defer bytes.Close(context.WithoutCancel(t.Context()))
	check.Must(bytes.Exec(t.Context(), "SELECT 1 AS \"\xff\xfe\"").ReadAll())(t)
	check.Eventually(t, "nobody has a list", func() bool {
		status, _, err := s.Request(http.MethodGet, "/v1/databases/"+w.ID+"/slow-queries/total", nil)
		return err == nil && status == http.StatusOK
	})
}

// Where the server collects nothing, the agent says so, and agent init what to do.
func TestAServerThatCollectsNothing(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, map[string]string{"shared_preload_libraries": ""})
	w := s.Made(t, database.SingleLogin)
	if list := asked(t, s, w, slowquery.ByTotal); list.Collected || list.Statements != nil || !list.Since.IsZero() {
		t.Errorf("%+v", list)
	}
	report := check.Must(setup.Init(t.Context(), setup.Options{
		DSN: s.PG.URL("postgres"), CredentialsFile: s.Config.CredentialsFile, Versions: s.Config.Versions,
		Languages: s.Config.Languages,
	}))(t)
	if !slices.ContainsFunc(report.Warnings, func(w string) bool {
		return strings.Contains(w, "shared_preload_libraries = 'pg_stat_statements'")
	}) {
		t.Errorf("%q", report.Warnings)
	}
	backedUp(t, s, w) // its login is made there too
}

// All who ask at once are answered, while customers hold locks on what they read.
func TestReadingsTakeTurns(t *testing.T) {
	t.Parallel()
	s, _ := ownStack(t, nil)
	w := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec("BEGIN; CREATE TABLE held (); LOCK TABLE held"))(t)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() { asked(t, s, w, slowquery.ByTotal) })
	}
	asking.Wait()
}
