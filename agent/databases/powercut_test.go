package databases_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// The agent is killed at a point of a create, and PostgreSQL with it. The same command makes the database as if nothing had been,
// or closing the operation leaves nothing. In "make test" the two take turns.
func TestPowerCutWhileCreating(t *testing.T) {
	t.Parallel()
	s := agenttest.ForgetfulStack(t)
	for i, point := range agenttest.PointsOf(t, "create") {
		for n, closed := range []bool{false, true} {
			if !agenttest.Turn(i, n, 2) {
				continue
			}
			t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) {
				w := agenttest.Want(database.Managed)
				s.CrashAt(t, point, w.Create())
				check.NoError(t, s.PG.Restart(context.Background(), cluster.Immediate)) // it outlives the subtest
				next := s.Child(t, "")
				defer next.Kill()
				if closed && isUndone(t, s, w) {
					return
				}
				s.Done(t, w.Create())
				for _, l := range w.Model.Logins() {
					name, password := w.Login(l)
					agenttest.Works(t, string(l), s.Pooled(t, w.Name, name, password))
				}
				s.NoOrphans(t)
			})
		}
	}
}

// isUndone closes the operation of a create, unless that is complete: whether its outcome was on disk, nobody can know.
func isUndone(t *testing.T, s *agenttest.Stack, w agenttest.Wanted) bool {
	t.Helper()
	_, reason, err := s.Send(agenttest.Closing(w.Operation))
	if err != nil || reason != "" && !strings.HasPrefix(reason, string(command.ReasonCompleted)) {
		t.Fatal(reason, err)
	}
	if reason != "" {
		return false
	}
	s.NoTrace(t, w)
	s.NoOrphans(t)
	s.RefusedFor(t, command.ReasonClosed, w.Create())
	return true
}
