package agenttest

import (
	"context"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/hosts/cluster"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// CrashAt has an agent killed at a point while it carries out a command. acceptance/crash does so at every point, and has the
// service send the command again; the tests here are about what else may follow, or fail with the agent.
func (s *Stack) CrashAt(t *testing.T, point string, c protocol.Command) {
	t.Helper()
	victim := s.Child(t, point)
	if _, reason, err := s.Send(c); err == nil {
		t.Fatalf("the agent answered %q before the point was hit", reason)
	}
	victim.Died(t)
}

// Turn reports whether the n-th of several cases is tried at the i-th point: each is, but in "make test", where they take turns.
func Turn(i, n, several int) bool { return sample.Whole() || i%several == n }

// ForgetfulStack is a stack whose PostgreSQL keeps every commit that has not waited for the disk to itself for as long as it
// can, so that a kill takes them all back.
func ForgetfulStack(t testing.TB) *Stack {
	t.Helper()
	s := New(t, clustertest.New(t, map[string]string{
		"synchronous_commit": "on", "wal_writer_delay": "10s", "wal_writer_flush_after": "0",
		"autovacuum": "off", // which would write the log out
	}), t.TempDir())
	first := s.Child(t, "")
	s.StartBouncer(t.Context(), t)
	first.Kill()
	return s
}

// ServerCrash has PostgreSQL crash, and come back, while the agent stands still at a point of a command. What the agent did
// before that is lost where it has not waited for the disk: it must not end the command as if it were not.
func (s *Stack) ServerCrash(t *testing.T, point string, c protocol.Command) *Child {
	t.Helper()
	working := s.Child(t, crash.Stop+point)
	type answer struct {
		reason string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		_, reason, err := s.Send(c)
		answered <- answer{reason, err}
	}()
	working.Stopped(t)
	check.NoError(t, s.PG.Restart(context.Background(), cluster.Immediate))
	working.Thaw(t)
	a := <-answered
	atEnd := strings.HasSuffix(point, ".reply")
	if a.err != nil || (a.reason == "") != atEnd || !atEnd && !strings.HasPrefix(a.reason, string(command.ReasonUnavailable)) {
		t.Errorf("the agent answered %q, %v", a.reason, a.err)
	}
	// The agent takes charge again, and PgBouncer has to find out that its connections are gone.
	check.Eventually(t, "the command is not done after the crash", func() bool {
		_, reason, err := s.Send(c)
		return err == nil && reason == ""
	})
	return working
}
