package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// Whoever fills the table of locks is ended before it is full: others log in, write and make tables all along.
func TestNobodyFillsTheTableOfLocks(t *testing.T) {
	s := agenttest.Shared(t)
	mallory, w := agenttest.Want(database.SingleLogin), s.Made(t, database.SingleLogin)
	mallory.Cap = 50
	s.Done(t, mallory.Create())
	check.Must(s.Owner(t, mallory).Exec("SELECT count(lo_create(0)) FROM generate_series(1, 40000)"))(t)
	for name, c := range map[string]struct {
		sessions  int
		statement string // of each session, which gets a number
	}{
		"a session":       {1, `SELECT count(pg_advisory_lock(%d00000000 + n)) FROM generate_series(1, 1000000) n`},
		"twenty sessions": {20, `SELECT count(pg_advisory_lock(%d00000000 + n)) FROM generate_series(1, 20000) n`},
		"one long transaction": {1, `DO $$ BEGIN PERFORM lo_unlink(oid) FROM pg_largeobject_metadata WHERE %d > 0;
			PERFORM pg_sleep(600); END $$`},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, c.sessions)
			for n := range c.sessions {
				go func() { ended <- failure(t.Context(), s, mallory, fmt.Sprintf(c.statement, n+1)) }()
			}
			stop := bystand(t, s, w)
			defer stop()
			first := <-ended
			var refused *pgconn.PgError
			if !errors.As(first, &refused) || refused.Code != "57P01" {
				t.Errorf("a session ended with %v", first)
			}
		})
		check.NoError(t, endAll(s, mallory))
	}
	const held = `SELECT count(*) < 1000 FROM pg_locks WHERE NOT fastpath`
	check.Eventually(t, "locks are held", func() bool { return s.One(t, held) == "true" })
}

// failure holds what a statement has locked until the session is ended.
func failure(ctx context.Context, s *agenttest.Stack, w agenttest.Wanted, statement string) error {
	conn, err := pgconn.Connect(ctx, s.PG.URLFor(w.Name, w.Passwords[database.OwnerLogin], w.Name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement).ReadAll(); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_sleep(600)").ReadAll()
	return err
}

// endAll ends the sessions that are left.
func endAll(s *agenttest.Stack, of agenttest.Wanted) error {
	_, err := s.Super.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", of.Name)
	return err
}

// bystand has another customer log in and make tables all along.
func bystand(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			db, err := sql.Open("postgres", s.PG.URLFor(w.Name, w.Passwords[database.OwnerLogin], w.Name))
			if err == nil {
				_, err = db.Exec("CREATE TABLE IF NOT EXISTS kept (n int PRIMARY KEY); DROP TABLE kept")
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				t.Errorf("another customer: %v", err)
				return
			}
		}
	})
	time.Sleep(100 * time.Millisecond)
	return func() { cancel(); working.Wait() }
}
