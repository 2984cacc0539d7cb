package agent_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// An agent that starts while a customer holds the whole table of locks comes to be in charge: nobody can log in to PostgreSQL
// then, and so nobody can see whose session it is.
func TestAStartWhileNoLockIsLeft(t *testing.T) {
	s := agenttest.Own(t)
	ctx, stop := context.WithCancel(t.Context())
	_, _, ended := s.Started(ctx, t)
	s.StartBouncer(t.Context(), t)
	w := s.Made(t, database.SingleLogin)
	stop()
	check.NoError(t, <-ended)
	mallory := check.Must(s.PooledOwner(t, w).Conn(t.Context()))(t)
	_, err := mallory.ExecContext(t.Context(), "SELECT pg_advisory_lock(n) FROM generate_series(1, 1000000) n")
	if err == nil || agenttest.Open(t, s.PG.URL("postgres")).PingContext(t.Context()) == nil {
		t.Fatalf("a superuser can still log in: %v", err)
	}
	_, log, _ := s.Started(t.Context(), t)
	if log.FilterMessageSnippet("clients of PgBouncer were closed").Len() != 1 {
		t.Errorf("logged %v", log.All())
	}
	if mallory.PingContext(t.Context()) == nil {
		t.Error("whoever held the locks is still there")
	}
	check.Eventually(t, "nobody gets in", func() bool { return s.PooledOwner(t, w).PingContext(t.Context()) == nil })
}
