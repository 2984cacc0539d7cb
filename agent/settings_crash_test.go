package agent_test

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

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// TestCrashWhileConfiguring has agents die, and PgBouncer, on one server.
func TestCrashWhileConfiguring(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	for _, c := range []struct {
		what string
		test func(t *testing.T, s *stack)
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
func diesWhileConfiguring(t *testing.T, s *stack) {
	agent := s.child(t, "")
	points := append(pointsOf(t, "settings"), crash.AccessEvicted, crash.AccessLoginsOff, crash.AccessEnded)
	for i, point := range points {
		if strings.HasPrefix(point, "agent.access.") && !turn(i, 0, 3) {
			continue
		}
		t.Log(point)
		w := s.made(t, database.Managed) // by the successor at the point before
		agent.kill()
		conns := s.connected(t, w)
		closed := w.configure(1, command.Configure{Timeouts: standard, ReadOnly: true, Closed: true})
		s.crashAt(t, point, closed)
		agent = s.child(t, "")
		s.done(t, closed)
		dead(t, "closed", conns)
		s.getsInNowhere(t, "closed", w.present(database.OwnerLogin))
		s.done(t, w.configure(2, command.Configure{Timeouts: standard}))
		s.getsIn(t, "lifted", w.present(database.OwnerLogin))
		s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "1min")
	}
}

// PostgreSQL is restored from a backup that was made before a database was closed. The agent tells so, and the same command does
// it again.
func restoresPostgreSQL(t *testing.T, s *stack) {
	agent := s.child(t, "")
	w := s.made(t, database.Managed)
	s.done(t, w.configure(1, command.Configure{Timeouts: standard}))
	data, kept := s.one(t, "SHOW data_directory"), filepath.Join(t.TempDir(), "data")
	meanwhile := func(script string) {
		t.Helper()
		agent.kill()
		check.NoError(t, s.pg.Stop(t.Context(), cluster.Immediate))
		check.Must(exec.CommandContext(t.Context(), "sh", "-c", script, data, kept).Output())(t)
		check.NoError(t, s.pg.Start(context.Background())) // it outlives the subtest
		agent = s.child(t, "")
	}
	applied := func(want string) {
		t.Helper()
		_, text, err := s.request(http.MethodGet, "/v1/applied/0", nil)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("applied: %s, want %s (%v)", text, want, err)
		}
	}
	meanwhile(`cp -a "$0" "$1"`)
	applied(`{"database.configure":1}`)
	closed := w.configure(2, command.Configure{Closed: true})
	s.done(t, closed)
	applied(`{"database.configure":2}`)
	meanwhile(`rm -r "$0"/* && mv "$1"/* "$0"`)
	applied(`{"database.configure":1}`)
	s.getsIn(t, "restored", w.present(database.OwnerLogin))
	s.done(t, closed)
	s.getsInNowhere(t, "closed again", w.present(database.OwnerLogin))
}

// Nobody sends the command again: the sessions of before end all the same, and one inside a transaction when that is over.
func leavesOlderSessions(t *testing.T, s *stack) {
	maker := s.child(t, "")
	w := s.made(t, database.Managed)
	maker.kill()
	idle := check.Must(s.pooledOwner(t, w).Conn(t.Context()))(t)
	check.Must(idle.ExecContext(t.Context(), "SELECT 1"))(t)
	held := check.Must(s.pooledOwner(t, w).BeginTx(t.Context(), nil))(t)
	check.Must(held.Exec("SELECT 1"))(t)
	s.crashAt(t, crash.SettingsStored, w.configure(1, command.Configure{Timeouts: standard}))
	s.child(t, "")
	endsSoon(t, "an idle session", idle)
	if got := shown(t, held, "statement_timeout"); got != "0" {
		t.Errorf("in a transaction that runs: %s", got)
	}
	check.NoError(t, held.Commit())
	s.noOlderSessions(t, w)
}

// An agent is killed between ALTER DATABASE and ALTER ROLE, which an administrator's change of the role holds up: nothing is set.
// A customer's would be ended before anybody could look.
func diesBetweenDatabaseAndRole(t *testing.T, s *stack) {
	victim := s.child(t, "")
	w := s.made(t, database.Managed)
	tx := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(fmt.Sprintf("ALTER ROLE %[1]q IN DATABASE %[1]q SET statement_timeout = 0", w.name)))(t)
	set := w.configure(1, command.Configure{Timeouts: standard})
	go s.send(set) // its outcome is unknown
	check.Eventually(t, "the agent is not held up", func() bool {
		held := s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock'") == "1"
		if !held {
			time.Sleep(time.Millisecond)
		}
		return held
	})
	victim.kill()
	const stored = `SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = $1`
	check.Eventually(t, "the agent's session goes on", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pgherd_agent'") == "0"
	})
	if n := s.one(t, stored, w.name); n != "0" {
		t.Errorf("%s sets of settings are stored", n)
	}
	check.NoError(t, tx.Rollback())
	s.child(t, "")
	s.done(t, set)
	if n := s.one(t, stored, w.name); n != "2" {
		t.Errorf("%s sets of settings are stored", n)
	}
	s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "1min")
}

// While PgBouncer is away the settings are stored, and a round in which it cannot be told is one a second. It is told when it is
// back, by whoever comes first.
func configuresWithoutPgBouncer(t *testing.T, s *stack) {
	s.child(t, "")
	w := s.made(t, database.Managed)
	check.NoError(t, s.bouncer.Stop(t.Context()))
	set := w.configure(1, command.Configure{Timeouts: standard})
	s.refusedFor(t, command.ReasonUnavailable, set)
	written := func() int {
		return check.Must(strconv.Atoi(s.one(t, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")))(t)
	}
	before := written()
	time.Sleep(2 * time.Second)
	if n := written() - before; n > 20 {
		t.Errorf("%d transactions in two seconds", n)
	}
	check.NoError(t, s.bouncer.Start(t.Context()))
	s.noOlderSessions(t, w)
	s.done(t, set)
	s.shows(t, w.present(database.OwnerLogin), "statement_timeout", "1min")
}
