package relocate_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// staysFor has an isolation refused, in time, while something is in its way that the agent cannot end. It says who, and nothing
// is half done: the database is opened again, or isolated once that is gone.
func staysFor(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, who string, away func()) {
	t.Helper()
	operation, began := agenttest.NewUUID(), time.Now()
	_, refusal, err := s.Send(w.Isolating(operation))
	if err != nil || !strings.HasPrefix(refusal, string(command.ReasonBusy)+":") || !strings.Contains(refusal, who) {
		t.Errorf("the isolation was answered %q, %v; want busy with %q", refusal, err, who)
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the answer took %s", took)
	}
	s.Done(t, w.Access(s.NextGeneration(), true, false))
	s.GetsIn(t, "after the refusal", w.Present(database.OwnerLogin))
	away()
	s.Done(t, w.Isolating(operation))
	s.IsIsolated(t, "once that is gone", w)
	s.Done(t, w.Rejoining(agenttest.NewUUID()))
	s.GetsIn(t, "back", w.Present(database.OwnerLogin))
}

// Customers' own transactions are ended: one that changes the role, one that is idle with locks on roles, another account's about
// the database, and whoever comes back as fast as they are ended.
func TestIsolatePushesThroughTransactions(t *testing.T) {
	t.Parallel()
	s, w := agenttest.DatabaseStack(t)
	stranger := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf(`GRANT CREATE ON DATABASE %[1]q TO %[2]q WITH GRANT OPTION;
		GRANT CONNECT ON DATABASE %[1]q TO %[2]q`, w.Name, stranger.Name)))(t)
	begin := func(db *sql.DB, statement string) *sql.Tx {
		t.Helper()
		tx := check.Must(db.Begin())(t)
		check.Must(tx.Exec(statement))(t)
		return tx
	}
	held := map[string]*sql.Tx{
		"its own change":     begin(s.Owner(t, w), "ALTER ROLE CURRENT_USER SET work_mem = '5MB'"),
		"its own setting":    begin(s.Owner(t, w), fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.Name)),
		"a grant to a login": begin(s.PooledOwner(t, w), fmt.Sprintf("CREATE TABLE t (); GRANT SELECT ON t TO %q", w.Names().Runtime)),
		"a stranger's grant": begin(s.Owner(t, stranger), fmt.Sprintf("GRANT CREATE ON DATABASE %q TO pg_monitor", w.Name)),
		"a stranger's setting": begin(s.Direct(t, stranger.Name, stranger.Name, stranger.Passwords[database.OwnerLogin]),
			fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '6MB'", w.Name)),
	}
	again := comesBack(t, s, stranger, w)
	s.Done(t, w.Isolating(agenttest.NewUUID()))
	for what, tx := range held {
		if err := tx.Commit(); err == nil {
			t.Errorf("%s was committed", what)
		}
	}
	again()
	s.IsIsolated(t, "against all these", w)

	// And so it is when the database comes back: nobody needs to be let in for that.
	tx := begin(s.Owner(t, stranger), fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.IsolatedName()))
	s.Done(t, w.Rejoining(agenttest.NewUUID()))
	if err := tx.Commit(); err == nil {
		t.Error("the stranger's setting was committed")
	}
	s.GetsIn(t, "back", w.Present(database.OwnerLogin))
}

// comesBack has another account's login connect to a database again and again, from many places.
func comesBack(t *testing.T, s *agenttest.Stack, stranger, to agenttest.Wanted) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	in := make(chan struct{}, 1)
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				db := check.Must(sql.Open("postgres", s.PG.URLFor(stranger.Name, stranger.Passwords[database.OwnerLogin], to.Name)))(t)
				if _, err := db.ExecContext(ctx, "SELECT 1"); err == nil {
					select {
					case in <- struct{}{}:
					default:
					}
					_, _ = db.ExecContext(ctx, "SELECT pg_sleep(60)") // it is ended
				}
				_ = db.Close()
			}
		})
	}
	<-in
	return func() { cancel(); all.Wait() }
}

// What the agent cannot end is waited for: an administrator, in the database or while they copy it or have changed it, and a job
// of its own.
func TestIsolateWaitsForWhatIsInItsWay(t *testing.T) {
	t.Parallel()
	s := agenttest.Shared(t)
	w := s.FilledDatabase(t)
	admin := s.SuperIn(t, w)
	agenttest.Works(t, "the administrator", admin)
	user := s.One(t, "SELECT current_user")
	staysFor(t, s, w, "still in it: "+user, func() { check.NoError(t, admin.Close()) })

	tx := check.Must(s.Super.BeginTx(t.Context(), nil))(t) // as CREATE DATABASE ... TEMPLATE holds it
	check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.Name)))(t)
	staysFor(t, s, w, "in its way: "+user, func() { check.NoError(t, tx.Rollback()) })

	staysFor(t, s, w, "pgherd_agent", jobIn(t, s, w))
}

// A prepared transaction outlives its session, and nobody but its owner may decide about it: one in the database, one that has
// changed a role of it, and one of another account's that is about the database, which the customer is not told the name of.
func TestPreparedTransactionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	server := clustertest.New(t, nil)
	s := agenttest.New(t, server, t.TempDir())
	clustertest.Exec(t, server.URL("postgres"), "ALTER SYSTEM SET max_prepared_transactions = 5") // agent init would refuse it
	check.NoError(t, server.Restart(t.Context(), cluster.Fast))
	s.Start(t)
	w, stranger := s.FilledDatabase(t), s.Made(t, database.SingleLogin)
	s.Saved(t, w)
	prepared := func(statement string) (inIt string, away func()) {
		check.Must(s.Owner(t, w).Exec("BEGIN; " + statement + "; PREPARE TRANSACTION 'theirs'"))(t)
		return "still in it: prepared transaction theirs", func() { check.Must(s.Owner(t, w).Exec("ROLLBACK PREPARED 'theirs'"))(t) }
	}
	const insert = "INSERT INTO things (name) VALUES ('more')"
	inIt, away := prepared(insert)
	inWay(t, s, w, command.ReasonBusy, inIt, away)
	for _, statement := range []string{insert, "ALTER ROLE CURRENT_USER SET work_mem = '5MB'"} {
		inIt, away = prepared(statement)
		staysFor(t, s, w, inIt, away)
	}
	_, away = prepared("ALTER ROLE CURRENT_USER PASSWORD 'another'")
	began := time.Now()
	// Without a try to close the login, which would wait for that.
	s.RefusedFor(t, command.ReasonBusy, w.Isolating(agenttest.NewUUID()))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the answer took %s", took)
	}
	away()
	s.GetsIn(t, "whom nobody has shut out", w.Present(database.OwnerLogin))

	other := s.Owner(t, stranger)
	const theirs = "BEGIN; ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'; PREPARE TRANSACTION 'not for everybody'"
	rollback := func() { check.Must(other.Exec("ROLLBACK PREPARED 'not for everybody'"))(t) }
	check.Must(other.Exec(fmt.Sprintf(theirs, w.Name)))(t)
	staysFor(t, s, w, "in its way: a prepared transaction", rollback)
	isolated(t, s, w)
	check.Must(other.Exec(fmt.Sprintf(theirs, w.IsolatedName())))(t)
	s.RefusedFor(t, command.ReasonBusy, w.Rejoining(agenttest.NewUUID()))
	s.RefusedFor(t, command.ReasonBusy, w.Purging(agenttest.NewUUID()))
	s.IsIsolated(t, "neither brought back nor purged", w)
	rollback()
	s.Done(t, w.Purging(agenttest.NewUUID()))
	s.IsPurged(t, w)
}
