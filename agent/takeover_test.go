package agent_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// A frozen agent holds connections, the advisory lock and the port. Its successor gets by without its help; when it wakes, in
// the middle of a create, it can write nothing and ends.
func TestFrozenPredecessorIsShutOut(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	old := s.Child(t, "")
	w := agenttest.Want(database.Managed)
	// A table that somebody has locked makes the create wait when it looks for its database. The pruning of the start may wait too.
	blocker := check.Must(s.Super.BeginTx(t.Context(), nil))(t)
	check.Must(blocker.Exec("LOCK TABLE ledger.database"))(t)
	go func() { _, _, _ = s.Send(w.Create()) }() // it gets no answer
	waiting := `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%d.id = $1'`
	check.Eventually(t, "the create does not wait", func() bool { return s.One(t, waiting) == "1" })
	old.Freeze(t)
	check.NoError(t, blocker.Rollback())

	second := *s
	second.Config.Listen = "127.0.0.1:" + freePort(t)
	next := second.Child(t, "")
	defer next.Kill()
	second.Done(t, w.Create())
	old.Thaw(t)
	select {
	case <-old.Done:
	case <-time.After(check.Patience):
		t.Fatal("the predecessor lives on")
	}
	if code := old.Cmd.ProcessState.ExitCode(); code != agenttest.SupersededStatus {
		t.Errorf("the predecessor ended with %s", old.Cmd.ProcessState)
	}
	agenttest.Works(t, "afterwards", s.PooledOwner(t, w))
	s.NoOrphans(t)
	second.Done(t, w.Access(2, false, true))
}

func freePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t))
}
