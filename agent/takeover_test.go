package agent_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// freeze stops a child with SIGSTOP; thaw lets it go on.
func (c *child) freeze(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func (c *child) thaw(t testing.TB) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// A frozen agent holds connections, the advisory lock and the port. Its successor gets by without its help; when it wakes, in
// the middle of a create, it can write nothing and ends.
func TestFrozenPredecessorIsShutOut(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	old := s.child(t, "")
	w := want(database.Managed)
	// A table that somebody has locked makes the create wait when it looks for its database. The pruning of the start may wait too.
	blocker := must(s.super.BeginTx(t.Context(), nil))(t)
	must(blocker.Exec("LOCK TABLE ledger.database"))(t)
	go func() { _, _, _ = s.send(w.create()) }() // it gets no answer
	waiting := `SELECT count(*) FROM pg_stat_activity
		WHERE usename = 'pgherd_agent' AND wait_event_type = 'Lock' AND query LIKE '%d.id = $1'`
	eventually(t, "the create does not wait", func() bool { return s.one(t, waiting) == "1" })
	old.freeze(t)
	if err := blocker.Rollback(); err != nil {
		t.Fatal(err)
	}

	second := *s
	second.config.Listen = "127.0.0.1:" + freePort(t)
	next := second.child(t, "")
	defer next.kill()
	second.done(t, w.create())
	old.thaw(t)
	select {
	case <-old.done:
	case <-time.After(20 * time.Second):
		t.Fatal("the predecessor lives on")
	}
	if code := old.cmd.ProcessState.ExitCode(); code != supersededStatus {
		t.Errorf("the predecessor ended with %s", old.cmd.ProcessState)
	}
	name, password := w.login(database.OwnerLogin)
	works(t, "afterwards", s.pooled(t, w.name, name, password))
	s.noOrphans(t)
	second.done(t, w.access(2, false, true))
}

// What a restart of PostgreSQL ends, the agent begins anew by itself.
func TestAgentSurvivesARestartOfPostgreSQL(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	a := s.child(t, "")
	defer a.kill()
	s.done(t, want(database.Managed).create())
	if err := s.pg.Restart(t.Context(), cluster.Immediate); err != nil {
		t.Fatal(err)
	}
	w := want(database.Managed)
	eventually(t, "no command is done after the restart", func() bool {
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
	a := s.child(t, "")
	defer a.kill()
	if err := s.bouncer.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := want(database.Managed)
	s.refusedFor(t, "unavailable", w.create())
	if err := s.bouncer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.done(t, w.create())
	s.noOrphans(t)
}

// eventually waits until something holds. What is said where it does not hold in time.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
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
	files := func() []string { return must(filepath.Glob(filepath.Join(s.config.BackupDir, w.id, "*")))(t) }
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
