package overlay_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Open transactions keep an opt-in from its end, each in its own way. It leaves them alone, and goes on when they have ended.
// Others get on meanwhile.
func TestOptInLeavesOpenTransactionsAlone(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t) // in which nobody else waits for them
	s.Start(t)
	elsewhere := s.Made(t, database.Managed)
	var tries sync.WaitGroup
	for _, open := range []string{
		"LOCK TABLE b IN ACCESS EXCLUSIVE MODE", "ALTER TABLE b ADD COLUMN more int", "CREATE TABLE late (id serial)",
		"CREATE SCHEMA late CREATE TABLE late (id serial)", "GRANT SELECT ON b TO PUBLIC", "CREATE OR REPLACE VIEW v AS SELECT 1 AS id",
		"CREATE TABLE IF NOT EXISTS b ()", // which has no transaction id yet
		"ALTER SEQUENCE b_id_seq RESTART", "REFRESH MATERIALIZED VIEW m",
	} {
		w := s.Made(t, database.SingleLogin)
		owner := s.Owner(t, w)
		check.Must(owner.Exec(`CREATE TABLE a (); CREATE TABLE b (id serial); CREATE TABLE c (); CREATE VIEW v AS SELECT 1 AS id;
			CREATE MATERIALIZED VIEW m AS TABLE b`))(t)
		tx := check.Must(owner.BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec(open))(t)
		tries.Go(func() {
			opted := w.OptIn()
			s.RefusedFor(t, command.ReasonUnfinished, opted)
			if _, err := tx.Exec("SELECT count(*) FROM c; ALTER TABLE c ADD COLUMN d int; TRUNCATE b RESTART IDENTITY"); err != nil {
				t.Errorf("%s: the customer's transaction: %v", open, err)
			}
			check.NoError(t, tx.Commit())
			s.DoneInTheEnd(t, opted)
			nothingLacks(t, s, w)
		})
	}
	time.Sleep(time.Second) // all of them are at work
	began := time.Now()
	s.Done(t, agenttest.Want(database.Managed).Create())
	l := s.Opened(t, elsewhere.Additional(1, role.Custom))
	check.Must(s.Owner(t, elsewhere).Exec("CREATE TABLE t (); GRANT SELECT ON t TO " + l.Username))(t)
	if has := s.RightsIn(t, elsewhere); has.Unread != "" {
		t.Error(has.Unread)
	}
	if found := s.Removed(t, l.Remove(2)); len(found.List) != 1 {
		t.Errorf("%+v", found)
	}
	if took := time.Since(began); took > 30*time.Second { // each waits for one turn, and not for the end of nine
		t.Errorf("others' work took %s", took)
	}
	tries.Wait()
}

// busily is whatever an owner does with a table or a schema while it is granted on. %d is its number.
var busily = []string{
	"ALTER TABLE t%d SET (fillfactor = 90)", "ALTER TABLE t%d ADD COLUMN more int; ALTER TABLE t%[1]d DROP COLUMN more",
	"TRUNCATE t%d RESTART IDENTITY", "ANALYZE t%d", "VACUUM t%d", "REFRESH MATERIALIZED VIEW m%d",
	"CREATE OR REPLACE VIEW v%d AS TABLE t%[1]d", "ALTER TABLE t%d RENAME TO other%[1]d; ALTER TABLE other%[1]d RENAME TO t%[1]d",
	"DROP VIEW v%d; CREATE VIEW v%[1]d AS TABLE t%[1]d", "CREATE INDEX ON t%d (id)", "INSERT INTO t%d DEFAULT VALUES",
	"ALTER VIEW v%d SET (security_barrier)", "ALTER MATERIALIZED VIEW m%d SET (fillfactor = 90)",
	"GRANT SELECT ON t%d TO PUBLIC", "REVOKE SELECT ON t%d FROM PUBLIC", "GRANT USAGE ON SCHEMA s%d TO PUBLIC",
	"ALTER SCHEMA s%d RENAME TO other%[1]d; ALTER SCHEMA other%[1]d RENAME TO s%[1]d",
}

// Nothing that a customer does waits for an opt-in for a second, and nothing fails for it but what changes the privileges of the
// same thing at the same moment, or a schema: PostgreSQL has no lock for those.
func TestOptInDisturbsNobody(t *testing.T) {
	s, w, owner := singleStack(t)
	tables, rounds := 40, 3
	if sample.Whole() {
		tables, rounds = 200, 30
	}
	check.Must(owner.Exec(fmt.Sprintf(`DO $$ BEGIN FOR i IN 1..%d LOOP
		EXECUTE format('CREATE TABLE t%%s (id serial); CREATE VIEW v%%1$s AS TABLE t%%1$s;
			CREATE MATERIALIZED VIEW m%%1$s AS TABLE t%%1$s; CREATE SCHEMA s%%1$s', i); END LOOP; END $$`, tables)))(t)
	n, over, busy := w.Names(), make(chan struct{}), sync.WaitGroup{}
	for worker := range 4 {
		db := s.Owner(t, w)
		busy.Go(func() {
			for i := worker; ; i += 4 {
				select {
				case <-over:
					return
				default:
				}
				statement := busily[(i/tables+i)%len(busily)]
				if _, err := db.Exec(fmt.Sprintf(statement, i%tables+1)); err != nil && !theirOwn(statement, err) {
					t.Errorf("%s: %v", statement, err)
				}
			}
		})
	}
	waited := waitsForAgent(t, s, w)
	super := s.SuperIn(t, w)
	for range rounds {
		s.DoneInTheEnd(t, w.OptIn())
		notWhole(t, s, w)
		for _, group := range []string{n.ReadGroup, n.WriteGroup} { // so that the next has all to do, table by table
			for i := range tables {
				for again := true; again; {
					_, err := super.Exec(fmt.Sprintf(`BEGIN; LOCK TABLE t%d; REVOKE ALL ON t%[1]d, t%[1]d_id_seq FROM %s;
						REVOKE ALL ON SCHEMA s%[1]d FROM %[2]s; COMMIT`, i+1, group))
					if again = err != nil; again {
						_, _ = super.Exec("ROLLBACK")
					}
				}
			}
		}
	}
	close(over)
	busy.Wait()
	s.DoneInTheEnd(t, w.OptIn())
	nothingLacks(t, s, w)
	waited()
}

// theirOwn is what customers' statements do to each other, and what PostgreSQL has no lock for.
func theirOwn(statement string, err error) bool {
	const gone, noSchema, deadlock, concurrently = "42P01", "3F000", "40P01", "XX000"
	verb, _, _ := strings.Cut(statement, " ")
	lockless := verb == "GRANT" || verb == "REVOKE" || strings.HasPrefix(statement, "ALTER SCHEMA")
	state := agenttest.SQLState(err)
	return state == gone || state == noSchema || state == deadlock ||
		state == concurrently && lockless && strings.Contains(err.Error(), "concurrently")
}

// waitsForAgent watches who waits in a database for a transaction of the agent's. The test calls it again for the verdict: nobody
// has for over a second.
func waitsForAgent(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) (verdict func()) {
	t.Helper()
	db, over, watching := s.SuperIn(t, w), make(chan struct{}), sync.WaitGroup{}
	var longest float64
	watching.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
			var seconds float64
			if err := db.QueryRow(waiting).Scan(&seconds); err != nil {
				t.Errorf("who waits: %v", err)
				return
			}
			longest = max(longest, seconds)
		}
	})
	return func() {
		t.Helper()
		close(over)
		watching.Wait()
		check.NoError(t, db.Close())
		t.Logf("the longest wait for the agent took %.3f s", longest)
		if longest > 1 {
			t.Errorf("somebody waited for the agent for %.3f s", longest)
		}
	}
}

// waiting is for how long others than the agent have been waiting for a transaction of the agent's, at most: not for longer than
// that one lasts.
const waiting = `SELECT coalesce(max(extract(epoch FROM clock_timestamp() - greatest(l.waitstart, a.xact_start))), 0)
	FROM pg_locks l JOIN pg_stat_activity w USING (pid), unnest(pg_blocking_pids(l.pid)) b JOIN pg_stat_activity a ON a.pid = b
	WHERE NOT l.granted AND w.usename <> 'pgherd_agent' AND a.usename = 'pgherd_agent' AND a.datname = current_database()`

// With very many tables, none is locked for long: neither one nor the next keeps its owner waiting.
func TestOptInOfManyTables(t *testing.T) {
	s, w, owner := singleStack(t)
	tables := 200
	if sample.Whole() {
		tables = 10_000
	}
	for i := 0; i < tables; i += 200 {
		check.Must(owner.Exec(fmt.Sprintf(`DO $$ BEGIN FOR i IN %d..%d LOOP EXECUTE format('CREATE TABLE t%%s (id serial, t text)', i);
			END LOOP; END $$`, i, i+199)))(t)
	}
	waited, db, done := waitsForAgent(t, s, w), s.Owner(t, w), make(chan struct{})
	var locking sync.WaitGroup
	locking.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				if _, err := db.Exec(fmt.Sprintf("BEGIN; LOCK TABLE t%d; COMMIT", i%tables)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for opted, unfinished := w.OptIn(), true; unfinished; { // it takes many turns
		_, reason, err := s.Send(opted)
		if unfinished = reason != ""; err != nil || unfinished && !agenttest.IsForLater(reason) {
			t.Fatal(reason, err)
		}
	}
	close(done)
	locking.Wait()
	waited()
	nothingLacks(t, s, w)
}
