package agent_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// entryOf takes the entries of a database in turn.
func entryOf(l loginOf, i int) string { return l.name + []string{"", ".transaction"}[i%2] }

// busy opens a transaction over an entry.
func (s *stack) busy(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT 1")
	}
	return tx, err
}

// roomy is a database that has room for many roles.
func (s *stack) roomy(t testing.TB) wanted {
	t.Helper()
	w := want(database.Managed)
	w.cap = 60
	s.done(t, w.create())
	return w
}

// Clients whose verifiers are being asked for when the server is slow count like any: the limit holds when all come at once.
func TestLimitHoldsWhileVerifiersAreAskedFor(t *testing.T) {
	s := realStack(t)
	w := s.roomy(t)
	l := w.additional(1, role.ReadOnly)
	l.limit = 2
	s.opened(t, l)
	lock := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	check.Must(lock.Exec("LOCK TABLE pooler.gate IN ACCESS EXCLUSIVE MODE"))(t)
	served := make(chan error, 6)
	for i := range cap(served) {
		db := s.pooled(t, entryOf(l, i), l.username, l.password)
		go func() {
			tx, err := s.busy(t.Context(), db)
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
			if s.one(t, "SELECT count(*) <= 2 FROM pg_stat_activity WHERE usename = $1", l.username) != "true" {
				t.Error("more sessions than two")
			}
		}
	}
}
