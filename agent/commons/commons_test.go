package commons_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/core/database"
)

func TestMain(m *testing.M) {
	os.Exit(agenttest.Main(m, "TestWhoGoesForTransactionIDs", "TestWhoGoesForNotifications", "TestWhoNotifiedIsRemembered",
		"TestWhoGoesForSharedCatalogs", "TestWhoComesBack", "TestWhoBurns",
		"TestTheNewestIDsShowWhoTakesThem", "TestNobodyGoesWithoutNeed"))
}

// The abuses take little at a time, so that nobody else is in danger before the next look, however slow that is.
const (
	burn = `DO $$ BEGIN LOOP
		FOR n IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; PERFORM pg_sleep(0.05); END LOOP; END $$`
	burnInside = `DO $$ BEGIN CREATE TEMP TABLE IF NOT EXISTS few (n int); LOOP
		FOR n IN 1..100 LOOP BEGIN INSERT INTO few VALUES (1); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP;
		DELETE FROM few; COMMIT; PERFORM pg_sleep(0.05); END LOOP; END $$`
	notify = `DO $$ BEGIN LOOP PERFORM pg_notify('x', repeat('y', 7000) || n) FROM generate_series(1, 300) n;
		COMMIT; PERFORM pg_sleep(0.1); END LOOP; END $$`
	store = `DO $$ BEGIN LOOP EXECUTE format('ALTER ROLE CURRENT_USER SET application_name = %L',
		(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 2000))); COMMIT; PERFORM pg_sleep(0.02); END LOOP; END $$`
)

// shared is a server with two accounts, of which mallory has two databases.
type shared struct {
	*agenttest.Stack
	alice, first, second agenttest.Wanted
}

// open begins a transaction that keeps what it sees, and has been open for longer than everybody's may. It returns a statement in
// it, which reports whether that stands.
func (s shared) open(t *testing.T, w agenttest.Wanted, first string) (does func(string) bool) {
	t.Helper()
	conn := check.Must(s.Owner(t, w).Conn(t.Context()))(t)
	for _, statement := range []string{first, "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT pg_sleep(1.1)"} {
		check.Must(conn.ExecContext(t.Context(), statement))(t)
	}
	return func(statement string) bool {
		_, err := conn.ExecContext(t.Context(), statement)
		return err == nil
	}
}

// does has a database's owner do something without end until somebody ends that.
func (s shared) does(t *testing.T, w agenttest.Wanted, what string) (ended func() bool) {
	t.Helper()
	conn, done := check.Must(s.Owner(t, w).Conn(t.Context()))(t), make(chan error, 1) // which is not made anew
	ctx, cancel := context.WithTimeout(t.Context(), check.Patience)
	t.Cleanup(cancel)
	go func() {
		_, err := conn.ExecContext(ctx, what)
		done <- err
	}()
	return func() bool { return <-done != nil && ctx.Err() == nil }
}

// Who takes too much of what all databases share goes, in whichever database and beside whom of the same account, and nobody
// else: neither another customer's transaction nor an administrator's.
func TestWhatAllShareHasABound(t *testing.T) {
	s := shared{Stack: agenttest.Own(t)}
	s.Config.Commons = commons.Limits{TransactionIDs: 10_000, QueueShare: 0.002, CatalogBytes: 2 << 20}
	a, _, _ := s.Started(t.Context(), t)
	s.StartBouncer(t.Context(), t)
	s.alice, s.first, s.second = s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	s.TellAccounts(t, map[string][]agenttest.Wanted{
		agenttest.NewUUID(): {s.alice}, agenttest.NewUUID(): {s.first, s.second},
	})
	for _, c := range []struct {
		resource    commons.Resource
		first, does string
		roomAgain   bool // once the transaction that keeps it is gone: who takes it may stay, so this is the last
	}{
		{commons.TransactionIDs, "SELECT 1", burn, false},
		{commons.TransactionIDs, "SELECT 1", burnInside, false},
		{commons.SharedCatalogs, "SELECT 1", store, false},
		{commons.NotifyQueue, "LISTEN x", notify, true},
	} {
		before, _ := a.Commons()
		administrator := check.Must(s.Super.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(t)
		check.Must(administrator.ExecContext(t.Context(), "SELECT 1"))(t)
		bystander, keeper, ended := s.open(t, s.alice, "LISTEN y"), s.open(t, s.first, c.first), s.does(t, s.second, c.does)
		check.Eventually(t, "the transaction that keeps "+string(c.resource)+" stands", func() bool { return !keeper("SELECT 1") })
		if !c.roomAgain && !ended() {
			t.Errorf("%s: it goes on", c.does)
		}
		if after, _ := a.Commons(); after.Ended[c.resource] < before.Ended[c.resource]+1 {
			t.Errorf("%s: %v were ended, before %v", c.does, after.Ended, before.Ended)
		}
		if c.resource == commons.SharedCatalogs { // it comes back
			s.does(t, s.second, c.does)()
			s.rests(t, s.second)
		}
		if !bystander("ROLLBACK") {
			t.Errorf("%s: another customer was ended", c.does)
		}
		check.NoError(t, administrator.Rollback(), c.does)
	}
}

// rests waits until nobody of a database passes the pooler, and sees that this has an end.
func (s shared) rests(t *testing.T, w agenttest.Wanted) {
	t.Helper()
	enters := func() error {
		db := s.PooledOwner(t, w)
		defer db.Close()
		return db.PingContext(t.Context())
	}
	check.Eventually(t, "who comes back may log in", func() bool {
		err := enters()
		return err != nil && strings.Contains(err.Error(), "authentication failed")
	})
	// What it has stored is more than PgBouncer takes.
	check.Must(s.Super.Exec(fmt.Sprintf("ALTER ROLE %q RESET ALL", w.Name)))(t)
	check.Eventually(t, "it never ends", func() bool {
		check.Must(s.Super.Exec("UPDATE pooler.resting SET until = now() WHERE until < now() + interval '61 s'"))(t)
		return enters() == nil
	})
}

// What a login has stored for itself in a database of others' is taken back where it is large.
func TestLargeSettingsInOthersDatabases(t *testing.T) {
	s := agenttest.Shared(t)
	mine, others := s.Made(t, database.SingleLogin), s.Made(t, database.SingleLogin)
	owner := s.Owner(t, mine)
	stores := func(in string, bytes int) {
		check.Must(owner.Exec(fmt.Sprintf(`DO $$ BEGIN EXECUTE format(
			'ALTER ROLE CURRENT_USER IN DATABASE %q SET application_name = %%L',
			(SELECT left(string_agg(md5(n::text), ''), %d) FROM generate_series(1, 4000) n)); END $$`, in, bytes)))(t)
	}
	stores(mine.Name, 100_000)
	stores(others.Name, 100_000)
	stores("postgres", 100_000)
	stores("template1", 100)
	const query = `SELECT string_agg(d.datname, ' ' ORDER BY d.datname <> 'template1') FROM pg_db_role_setting s
		JOIN pg_database d ON d.oid = s.setdatabase
		WHERE s.setrole = (SELECT oid FROM pg_roles WHERE rolname = $1) AND s.setconfig::text ~ 'application_name'`
	check.Eventually(t, "it is still there", func() bool { return s.One(t, query, mine.Name) == "template1 "+mine.Name })
}
