package agent_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
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

// An agent that somebody starts by mistake beside another one, with other folders, ends and says where the other runs. That one
// stays in charge all the time.
func TestASecondAgentDoesNotTakeCharge(t *testing.T) {
	t.Parallel()
	s := agenttest.Own(t).Start(t)
	instance := s.One(t, "SELECT instance FROM ledger.agent")
	second := *s
	second.Config.Listen, second.Config.BackupDir = "127.0.0.1:"+freePort(t), t.TempDir()
	_, _, ended := second.Run(t.Context(), t)
	var held *ledger.HeldError
	select {
	case err := <-ended:
		if !errors.As(err, &held) || !held.Here || !strings.Contains(err.Error(), "stop that one first") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(check.Patience):
		t.Fatal("it does not end")
	}
	if now := s.One(t, "SELECT instance FROM ledger.agent"); now != instance {
		t.Errorf("%s was in charge, and now %s is", instance, now)
	}
	s.Done(t, agenttest.Want(database.Managed).Create())
}

func freePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(check.Must(cluster.FreePort("127.0.0.1"))(t))
}
