package logins_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// entryOf takes the entries of a database in turn.
func entryOf(l agenttest.LoginOf, i int) string { return l.Name + []string{"", ".transaction"}[i%2] }

// busy opens a transaction over an entry.
func busy(s *agenttest.Stack, ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT 1")
	}
	return tx, err
}

// roomy is a database that has room for many roles.
func roomy(t testing.TB, s *agenttest.Stack) agenttest.Wanted {
	t.Helper()
	w := agenttest.Want(database.Managed)
	w.Cap = 60
	s.Done(t, w.Create())
	return w
}

// Clients whose verifiers are being asked for when the server is slow count like any: the limit holds when all come at once.
func TestLimitHoldsWhileVerifiersAreAskedFor(t *testing.T) {
	s := agenttest.Shared(t)
	w := roomy(t, s)
	l := w.Additional(1, role.ReadOnly)
	l.Limit = 2
	s.Opened(t, l)
	lock := check.Must(s.Super.BeginTx(t.Context(), nil))(t)
	check.Must(lock.Exec("LOCK TABLE pooler.gate IN ACCESS EXCLUSIVE MODE"))(t)
	served := make(chan error, 6)
	for i := range cap(served) {
		db := s.Pooled(t, entryOf(l, i), l.Username, l.Password)
		go func() {
			tx, err := busy(s, t.Context(), db)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "SELECT pg_sleep(0.2)")
				err = errors.Join(err, tx.Rollback())
			}
			served <- errors.Join(err, db.Close())
		}()
	}
	select {
	case err := <-served:
		t.Fatal("the log-ins do not wait for the verifier: ", err)
	case <-time.After(500 * time.Millisecond):
	}
	check.NoError(t, lock.Rollback())
	for done := 0; done < cap(served); {
		select {
		case err := <-served:
			done++
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Millisecond):
			if s.One(t, "SELECT count(*) <= 2 FROM pg_stat_activity WHERE usename = $1", l.Username) != "true" {
				t.Error("more sessions than two")
			}
		}
	}
}

// A login with a limit of 1 is proven at both entries, one after the other, and no server connection of the first proof keeps the
// second waiting, or the customer who comes then.
func TestProofsShareTheOnlyServerConnection(t *testing.T) {
	s := agenttest.Shared(t)
	l := roomy(t, s).Additional(1, role.ReadOnly)
	l.Limit = 1
	s.Opened(t, l)
	fastest := time.Minute
	for range 3 {
		next := l.Renewed()
		began := time.Now()
		s.Done(t, l.Rotate(s.NextGeneration(), next))
		agenttest.Works(t, "a client after the proof", s.Pooled(t, entryOf(l, 1), next.Username, next.Password))
		l, fastest = next, min(fastest, time.Since(began))
	}
	if fastest > 1500*time.Millisecond { // server_idle_timeout is 2 s
		t.Errorf("the fastest of three rotations with a log-in took %s", fastest)
	}
}
