package agent_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// made is a database that a test has made, with all its logins connected.
func (s *stack) made(t testing.TB, model database.RoleModel) wanted {
	t.Helper()
	w := want(model)
	s.done(t, w.create())
	return w
}

// databaseStack is realStack with a database of a test's own.
func databaseStack(t testing.TB) (*stack, wanted) {
	t.Helper()
	s := realStack(t)
	return s, s.made(t, database.Managed)
}

// connected opens one connection of every login in every way, and keeps it.
func (s *stack) connected(t testing.TB, w wanted) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for _, l := range w.model.Logins() {
		for way, conn := range s.connectedAs(t, w.present(l)) {
			conns[string(l)+" "+way] = conn
		}
	}
	return conns
}

func TestStopEndsEveryConnectionAndLetsNobodyIn(t *testing.T) {
	s, w := databaseStack(t)
	conns := s.connected(t, w)
	// A customer's own change of its role, left open, must not keep the agent from closing.
	blocking := check.Must(s.owner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(blocking.Exec("ALTER ROLE CURRENT_USER SET work_mem = '5MB'"))(t)

	s.done(t, w.access(2, false, true))
	dead(t, "stopped", conns)
	if n := s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", w.name); n != "0" {
		t.Errorf("%s sessions are left", n)
	}
	for _, l := range w.model.Logins() {
		s.getsInNowhere(t, string(l), w.present(l))
	}

	s.done(t, w.access(3, true, false))
	for _, l := range w.model.Logins() {
		s.getsIn(t, string(l), w.present(l))
	}
}

func TestAllowlistHasNetworksOnly(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.SingleLogin)
	for _, bad := range []string{"all", "10.0.0.1/8"} {
		s.refusedFor(t, command.ReasonInvalid, w.allowlist(2, bad))
	}
}

func TestParallelCommandsOfManyDatabases(t *testing.T) {
	s := realStack(t)
	ended := make(chan string, 12)
	for range cap(ended) {
		go func() {
			w := want(database.Managed)
			_, reason, err := s.send(w.create())
			if err == nil && reason == "" {
				_, reason, err = s.send(w.access(2, false, true))
			}
			if err != nil {
				reason = err.Error()
			}
			ended <- reason
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range cap(ended) {
		select {
		case reason := <-ended:
			if reason != "" {
				t.Error(reason)
			}
		case <-ctx.Done():
			t.Fatal("they wait for each other")
		}
	}
}
