package agent_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
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

// What a restart of PostgreSQL ends, the agent begins anew by itself.
func TestAgentSurvivesARestartOfPostgreSQL(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	s.done(t, want(database.Managed).create())
	check.NoError(t, s.pg.Restart(t.Context(), cluster.Immediate))
	w := want(database.Managed)
	check.Eventually(t, "no command is done after the restart", func() bool {
		_, reason, err := s.send(w.create())
		return err == nil && reason == ""
	})
	time.Sleep(2 * time.Second) // long enough for the agent to notice and to give up, if it did
	s.done(t, want(database.Managed).create())
	s.noOrphans(t)
}

func TestAgentWaitsForPgBouncer(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	check.NoError(t, s.bouncer.Stop(t.Context()))
	w := want(database.Managed)
	s.refusedFor(t, "unavailable", w.create())
	check.NoError(t, s.bouncer.Start(t.Context()))
	s.done(t, w.create())
	s.noOrphans(t)
}

// An agent that was suspended in a backup, and wakes while its successor makes the same one, touches nothing of that.
func TestFrozenPredecessorLeavesTheBackupAlone(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	const point = crash.Stop + "agent.backup.after-partial"
	old := s.child(t, point)
	w := s.filledDatabase(t)
	c := w.backup(newUUID(), backupName, true)
	go func() { _, _, _ = s.send(c) }() // it gets no answer
	old.stopped(t)

	second := *s
	second.config.Listen = "127.0.0.1:" + freePort(t)
	next := second.child(t, point)
	go func() { _, _, _ = second.send(c) }()
	next.stopped(t)
	files := func() []string { return check.Must(filepath.Glob(filepath.Join(s.config.BackupDir, w.id, "*")))(t) }
	written := files()
	old.thaw(t)
	<-old.done
	if now := files(); len(written) != 3 || !slices.Equal(now, written) {
		t.Errorf("the files were %v, and are %v after the predecessor's end", written, now)
	}
	next.thaw(t)
	if report := second.backedUp(t, c); report.State != command.BackupDone || report.VerifiedAt == nil {
		t.Errorf("%+v", report)
	}
}
