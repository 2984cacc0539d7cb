package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// forgetfulStack is a stack whose PostgreSQL keeps every commit that has not waited for the disk to itself for as long as it
// can, so that a kill takes them all back.
func forgetfulStack(t testing.TB) *stack {
	t.Helper()
	s := newStack(t, clustertest.New(t, map[string]string{
		"synchronous_commit": "on", "wal_writer_delay": "10s", "wal_writer_flush_after": "0",
		"autovacuum": "off", // which would write the log out
	}), t.TempDir())
	first := s.child(t, "")
	s.startBouncer(t, t.Context())
	first.kill()
	return s
}

// serverCrash has PostgreSQL crash, and come back, while the agent stands still at a point of a command. What the agent did
// before that is lost where it has not waited for the disk: it must not end the command as if it were not.
func (s *stack) serverCrash(t *testing.T, point string, c protocol.Command) *child {
	t.Helper()
	working := s.child(t, crash.Stop+point)
	type answer struct {
		reason string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		_, reason, err := s.send(c)
		answered <- answer{reason, err}
	}()
	working.stopped(t)
	check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate))
	working.thaw(t)
	a := <-answered
	atEnd := strings.HasSuffix(point, ".reply")
	if a.err != nil || (a.reason == "") != atEnd || !atEnd && !strings.HasPrefix(a.reason, string(command.ReasonUnavailable)) {
		t.Errorf("the agent answered %q, %v", a.reason, a.err)
	}
	// The agent takes charge again, and PgBouncer has to find out that its connections are gone.
	check.Eventually(t, "the command is not done after the crash", func() bool {
		_, reason, err := s.send(c)
		return err == nil && reason == ""
	})
	return working
}

// The agent is killed at a point of a create, and PostgreSQL with it. The same command makes the database as if nothing had been,
// or closing the operation leaves nothing. In "make test" the two take turns.
func TestPowerCutWhileCreating(t *testing.T) {
	t.Parallel()
	s := forgetfulStack(t)
	for i, point := range pointsOf(t, "create") {
		for n, closed := range []bool{false, true} {
			if !turn(i, n, 2) {
				continue
			}
			t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) {
				w := want(database.Managed)
				s.crashAt(t, point, w.create())
				check.NoError(t, s.pg.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
				next := s.child(t, "")
				defer next.kill()
				if closed && s.isUndone(t, w) {
					return
				}
				s.done(t, w.create())
				for _, l := range w.model.Logins() {
					name, password := w.login(l)
					works(t, string(l), s.pooled(t, w.name, name, password))
				}
				s.noOrphans(t)
			})
		}
	}
}

// isUndone closes the operation of a create, unless that is complete: whether its outcome was on disk, nobody can know.
func (s *stack) isUndone(t *testing.T, w wanted) bool {
	t.Helper()
	_, reason, err := s.send(closing(w.operation))
	if err != nil || reason != "" && !strings.HasPrefix(reason, string(command.ReasonCompleted)) {
		t.Fatal(reason, err)
	}
	if reason != "" {
		return false
	}
	s.noTrace(t, w)
	s.noOrphans(t)
	s.refusedFor(t, command.ReasonClosed, w.create())
	return true
}
