package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// staysFor has an isolation refused, in time, while something is in its way that the agent cannot end. It says who, and nothing
// is half done: the database is opened again, or isolated once that is gone.
func (s *stack) staysFor(t *testing.T, w wanted, who string, away func()) {
	t.Helper()
	operation, began := newUUID(), time.Now()
	_, refusal, err := s.send(w.isolating(operation))
	if err != nil || !strings.HasPrefix(refusal, string(command.ReasonBusy)+":") || !strings.Contains(refusal, who) {
		t.Errorf("the isolation was answered %q, %v; want busy with %q", refusal, err, who)
	}
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the answer took %s", took)
	}
	s.done(t, w.access(s.nextGeneration(), true, false))
	s.getsIn(t, "after the refusal", w.present(database.OwnerLogin))
	away()
	s.done(t, w.isolating(operation))
	s.isIsolated(t, "once that is gone", w)
	s.done(t, w.rejoining(newUUID()))
	s.getsIn(t, "back", w.present(database.OwnerLogin))
}

// Customers' own transactions are ended: one that changes the role, one that is idle with locks on roles, another account's about
// the database, and whoever comes back as fast as they are ended.
func TestIsolatePushesThroughTransactions(t *testing.T) {
	t.Parallel()
	s, w := databaseStack(t)
	stranger := s.made(t, database.SingleLogin)
	check.Must(s.owner(t, w).Exec(fmt.Sprintf(`GRANT CREATE ON DATABASE %[1]q TO %[2]q WITH GRANT OPTION;
		GRANT CONNECT ON DATABASE %[1]q TO %[2]q`, w.name, stranger.name)))(t)
	begin := func(db *sql.DB, statement string) *sql.Tx {
		t.Helper()
		tx := check.Must(db.Begin())(t)
		check.Must(tx.Exec(statement))(t)
		return tx
	}
	held := map[string]*sql.Tx{
		"its own change":     begin(s.owner(t, w), "ALTER ROLE CURRENT_USER SET work_mem = '5MB'"),
		"its own setting":    begin(s.owner(t, w), fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.name)),
		"a grant to a login": begin(s.pooledOwner(t, w), fmt.Sprintf("CREATE TABLE t (); GRANT SELECT ON t TO %q", w.names().Runtime)),
		"a stranger's grant": begin(s.owner(t, stranger), fmt.Sprintf("GRANT CREATE ON DATABASE %q TO pg_monitor", w.name)),
		"a stranger's setting": begin(s.direct(t, stranger.name, stranger.name, stranger.passwords[database.OwnerLogin]),
			fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '6MB'", w.name)),
	}
	again := s.comesBack(t, stranger, w)
	s.done(t, w.isolating(newUUID()))
	for what, tx := range held {
		if err := tx.Commit(); err == nil {
			t.Errorf("%s was committed", what)
		}
	}
	again()
	s.isIsolated(t, "against all these", w)

	// And so it is when the database comes back: nobody needs to be let in for that.
	tx := begin(s.owner(t, stranger), fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.isolatedName()))
	s.done(t, w.rejoining(newUUID()))
	if err := tx.Commit(); err == nil {
		t.Error("the stranger's setting was committed")
	}
	s.getsIn(t, "back", w.present(database.OwnerLogin))
}

// comesBack has another account's login connect to a database again and again, from many places.
func (s *stack) comesBack(t *testing.T, stranger, to wanted) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	in := make(chan struct{}, 1)
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				db := check.Must(sql.Open("postgres", s.pg.URLFor(stranger.name, stranger.passwords[database.OwnerLogin], to.name)))(t)
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
	s := realStack(t)
	w := s.filledDatabase(t)
	admin := s.superIn(t, w)
	works(t, "the administrator", admin)
	user := s.one(t, "SELECT current_user")
	s.staysFor(t, w, "still in it: "+user, func() { check.NoError(t, admin.Close()) })

	tx := check.Must(s.super.BeginTx(t.Context(), nil))(t) // as CREATE DATABASE ... TEMPLATE holds it
	check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'", w.name)))(t)
	s.staysFor(t, w, "in its way: "+user, func() { check.NoError(t, tx.Rollback()) })

	s.staysFor(t, w, "pgherd_agent", s.jobIn(t, w))
}

// A prepared transaction outlives its session, and nobody but its owner may decide about it: one in the database, one that has
// changed a role of it, and one of another account's that is about the database, which the customer is not told the name of.
func TestPreparedTransactionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStack(t, clustertest.New(t, map[string]string{"max_prepared_transactions": "5"}), t.TempDir())
	s.started(t, t.Context())
	s.startBouncer(t, t.Context())
	w, stranger := s.filledDatabase(t), s.made(t, database.SingleLogin)
	s.saved(t, w)
	prepared := func(statement string) (inIt string, away func()) {
		check.Must(s.owner(t, w).Exec("BEGIN; " + statement + "; PREPARE TRANSACTION 'theirs'"))(t)
		return "still in it: prepared transaction theirs", func() { check.Must(s.owner(t, w).Exec("ROLLBACK PREPARED 'theirs'"))(t) }
	}
	const insert = "INSERT INTO things (name) VALUES ('more')"
	inIt, away := prepared(insert)
	s.inWay(t, w, command.ReasonBusy, inIt, away)
	for _, statement := range []string{insert, "ALTER ROLE CURRENT_USER SET work_mem = '5MB'"} {
		inIt, away = prepared(statement)
		s.staysFor(t, w, inIt, away)
	}
	_, away = prepared("ALTER ROLE CURRENT_USER PASSWORD 'another'")
	began := time.Now()
	s.refusedFor(t, command.ReasonBusy, w.isolating(newUUID())) // without a try to close the login, which would wait for that
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the answer took %s", took)
	}
	away()
	s.getsIn(t, "whom nobody has shut out", w.present(database.OwnerLogin))

	other := s.owner(t, stranger)
	const theirs = "BEGIN; ALTER ROLE CURRENT_USER IN DATABASE %q SET work_mem = '5MB'; PREPARE TRANSACTION 'not for everybody'"
	rollback := func() { check.Must(other.Exec("ROLLBACK PREPARED 'not for everybody'"))(t) }
	check.Must(other.Exec(fmt.Sprintf(theirs, w.name)))(t)
	s.staysFor(t, w, "in its way: a prepared transaction", rollback)
	s.isolated(t, w)
	check.Must(other.Exec(fmt.Sprintf(theirs, w.isolatedName())))(t)
	s.refusedFor(t, command.ReasonBusy, w.rejoining(newUUID()))
	s.refusedFor(t, command.ReasonBusy, w.purging(newUUID()))
	s.isIsolated(t, "neither brought back nor purged", w)
	rollback()
	s.done(t, w.purging(newUUID()))
	s.isPurged(t, w)
}
