package agent_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// freeze stops a child with SIGSTOP; thaw lets it go on.
func (c *child) freeze(t testing.TB) {
	t.Helper()
	check.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
}

func (c *child) thaw(t testing.TB) {
	t.Helper()
	check.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
}

// A frozen agent holds connections, the advisory lock and the port. Its successor gets by without its help; when it wakes, in
// the middle of a create, it can write nothing and ends.
func TestFrozenPredecessorIsShutOut(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	old := s.child(t, "")
	w := want(database.Managed)
	// A table that somebody has locked makes the create wait when it looks for its database. The pruning of the start may wait too.
	blocker := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	check.Must(blocker.Exec("LOCK TABLE ledger.database"))(t)
	go func() { _, _, _ = s.send(w.create()) }() // it gets no answer
	waiting := `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%d.id = $1'`
	check.Eventually(t, "the create does not wait", func() bool { return s.one(t, waiting) == "1" })
	old.freeze(t)
	check.NoError(t, blocker.Rollback())

	second := *s
	second.config.Listen = "127.0.0.1:" + freePort(t)
	next := second.child(t, "")
	defer next.kill()
	second.done(t, w.create())
	old.thaw(t)
	select {
	case <-old.done:
	case <-time.After(check.Patience):
		t.Fatal("the predecessor lives on")
	}
	if code := old.cmd.ProcessState.ExitCode(); code != supersededStatus {
		t.Errorf("the predecessor ended with %s", old.cmd.ProcessState)
	}
	works(t, "afterwards", s.pooledOwner(t, w))
	s.noOrphans(t)
	second.done(t, w.access(2, false, true))
}
