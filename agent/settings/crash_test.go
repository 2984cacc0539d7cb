package settings_test

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// TestCrashWhileConfiguring has agents die, and PgBouncer, on one server.
func TestCrashWhileConfiguring(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	for _, c := range []struct {
		what string
		test func(t *testing.T, s *agenttest.Stack)
	}{
		{"and PostgreSQL is restored", restoresPostgreSQL},
		{"at each point", diesWhileConfiguring},
		{"and the command does not come again", leavesOlderSessions},
		{"between database and role", diesBetweenDatabaseAndRole},
		{"PgBouncer", configuresWithoutPgBouncer},
	} {
		t.Run(c.what, func(t *testing.T) { c.test(t, s) })
	}
}

// Whatever point an agent dies at, its successor carries the command out, or ends what is left of its sessions. The points of
// closing are passed too.
func diesWhileConfiguring(t *testing.T, s *agenttest.Stack) {
	agent := s.Child(t, "")
	points := append(agenttest.PointsOf(t, "settings"), crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded)
	for i, point := range points {
		if strings.HasPrefix(point, "agent.access.") && !agenttest.Turn(i, 0, 3) {
			continue
		}
		t.Log(point)
		w := s.Made(t, database.Managed) // by the successor at the point before
		agent.Kill()
		conns := s.Connected(t, w)
		closed := w.Configure(1, command.Configure{Timeouts: agenttest.Standard, ReadOnly: true, Closed: true})
		s.CrashAt(t, point, closed)
		agent = s.Child(t, "")
		s.Done(t, closed)
		agenttest.Dead(t, "closed", conns)
		s.GetsInNowhere(t, "closed", w.Present(database.OwnerLogin))
		s.Done(t, w.Configure(2, command.Configure{Timeouts: agenttest.Standard}))
		s.GetsIn(t, "lifted", w.Present(database.OwnerLogin))
		s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "1min")
	}
}

// PostgreSQL is restored from a backup that was made before a database was closed. The agent tells so, and the same command does
// it again.
func restoresPostgreSQL(t *testing.T, s *agenttest.Stack) {
	agent := s.Child(t, "")
	w := s.Made(t, database.Managed)
	s.Done(t, w.Configure(1, command.Configure{Timeouts: agenttest.Standard}))
	data, kept := s.One(t, "SHOW data_directory"), filepath.Join(t.TempDir(), "data")
	meanwhile := func(script string) {
		t.Helper()
		agent.Kill()
		check.NoError(t, s.PG.Stop(t.Context(), cluster.Immediate))
		check.Must(exec.CommandContext(t.Context(), "sh", "-c", script, data, kept).Output())(t)
		check.NoError(t, s.PG.Start(context.Background())) // it outlives the subtest
		agent = s.Child(t, "")
	}
	applied := func(want string) {
		t.Helper()
		_, text, err := s.Request(http.MethodGet, "/v1/applied/0", nil)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("applied: %s, want %s (%v)", text, want, err)
		}
	}
	meanwhile(`cp -a "$0" "$1"`)
	applied(`{"database.configure":1}`)
	closed := w.Configure(2, command.Configure{Closed: true})
	s.Done(t, closed)
	applied(`{"database.configure":2}`)
	meanwhile(`rm -r "$0"/* && mv "$1"/* "$0"`)
	applied(`{"database.configure":1}`)
	s.GetsIn(t, "restored", w.Present(database.OwnerLogin))
	s.Done(t, closed)
	s.GetsInNowhere(t, "closed again", w.Present(database.OwnerLogin))
}

// Nobody sends the command again: the sessions of before end all the same, and one inside a transaction when that is over.
func leavesOlderSessions(t *testing.T, s *agenttest.Stack) {
	maker := s.Child(t, "")
	w := s.Made(t, database.Managed)
	maker.Kill()
	idle := check.Must(s.PooledOwner(t, w).Conn(t.Context()))(t)
	check.Must(idle.ExecContext(t.Context(), "SELECT 1"))(t)
	held := check.Must(s.PooledOwner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(held.Exec("SELECT 1"))(t)
	s.CrashAt(t, crash.SettingsStored, w.Configure(1, command.Configure{Timeouts: agenttest.Standard}))
	s.Child(t, "")
	endsSoon(t, "an idle session", idle)
	if got := agenttest.Shown(t, held, "statement_timeout"); got != "0" {
		t.Errorf("in a transaction that runs: %s", got)
	}
	check.NoError(t, held.Commit())
	s.NoOlderSessions(t, w)
}

// An agent is killed between ALTER DATABASE and ALTER ROLE, which an administrator's change of the role holds up: nothing is set.
// A customer's would be ended before anybody could look.
func diesBetweenDatabaseAndRole(t *testing.T, s *agenttest.Stack) {
	victim := s.Child(t, "")
	w := s.Made(t, database.Managed)
	tx := check.Must(s.Super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE %[1]q IN DATABASE %[1]q SET statement_timeout = 0", w.Name)))(t)
	set := w.Configure(1, command.Configure{Timeouts: agenttest.Standard})
	go s.Send(set) // its outcome is unknown
	check.Eventually(t, "the agent is not held up", func() bool {
		held := s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
		if !held {
			time.Sleep(time.Millisecond)
		}
		return held
	})
	victim.Kill()
	const stored = `SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = $1`
	check.Eventually(t, "the agent's session goes on", func() bool {
		return s.One(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	if n := s.One(t, stored, w.Name); n != "0" {
		t.Errorf("%s sets of settings are stored", n)
	}
	check.NoError(t, tx.Rollback())
	s.Child(t, "")
	s.Done(t, set)
	if n := s.One(t, stored, w.Name); n != "2" {
		t.Errorf("%s sets of settings are stored", n)
	}
	s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "1min")
}

// While PgBouncer is away the settings are stored, and a round in which it cannot be told is one a second. It is told when it is
// back, by whoever comes first.
func configuresWithoutPgBouncer(t *testing.T, s *agenttest.Stack) {
	s.Child(t, "")
	w := s.Made(t, database.Managed)
	check.NoError(t, s.Bouncer.Stop(t.Context()))
	set := w.Configure(1, command.Configure{Timeouts: agenttest.Standard})
	s.RefusedFor(t, command.ReasonUnavailable, set)
	written := func() int {
		return check.Must(strconv.Atoi(s.One(t, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")))(t)
	}
	before := written()
	time.Sleep(2 * time.Second)
	if n := written() - before; n > 20 {
		t.Errorf("%d transactions in two seconds", n)
	}
	check.NoError(t, s.Bouncer.Start(t.Context()))
	s.NoOlderSessions(t, w)
	s.Done(t, set)
	s.Shows(t, w.Present(database.OwnerLogin), "statement_timeout", "1min")
}
