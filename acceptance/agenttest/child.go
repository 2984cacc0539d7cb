package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// childSettings are what a child reads.
type childSettings struct {
	Config agent.Config
	Pair   cluster.Certificate
}

// Child is an agent in a process of its own.
type Child struct {
	Cmd   *exec.Cmd
	ready chan struct{} // closed when it is in charge, or has ended
	Done  chan struct{} // closed when it has ended
}

// launch starts an agent that kills itself at a point, or at none where that is empty.
func (s *Stack) launch(t testing.TB, point string) *Child {
	t.Helper()
	if p := strings.TrimPrefix(point, crash.Stop); p != "" && !slices.Contains(agent.CrashPoints(), p) {
		t.Fatalf("%s is no point of the agent", p)
	}
	config := check.Must(json.Marshal(childSettings{s.Config, s.pair}))(t)
	c := &Child{Cmd: exec.Command(check.Must(os.Executable())(t)), ready: make(chan struct{}), Done: make(chan struct{})}
	c.Cmd.Env = append(os.Environ(), childConfig+"="+string(config), crash.Env+"="+point)
	c.Cmd.Stderr = os.Stderr
	out := check.Must(c.Cmd.StdoutPipe())(t)
	check.NoError(t, c.Cmd.Start())
	go func() {
		bufio.NewScanner(out).Scan()
		close(c.ready)
		_ = c.Cmd.Wait()
		close(c.Done)
	}()
	t.Cleanup(c.Kill)
	return c
}

// Child starts an agent and waits until it is in charge. PostgreSQL must run: where a crash before has left none, the test ends
// at once.
func (s *Stack) Child(t testing.TB, point string) *Child {
	t.Helper()
	c := s.launch(t, point)
	select {
	case <-c.ready:
	case <-s.PG.Done():
		t.Fatalf("the agent is not in charge: PostgreSQL has ended (%s)", s.PG.Exit())
	case <-time.After(check.Patience):
		t.Fatal("the agent is not in charge")
	}
	return c
}

// Kill ends a child, and waits for its end.
func (c *Child) Kill() {
	_ = c.Cmd.Process.Kill() // it may have ended already
	<-c.Done
}

// DiesOver sends a command again and again until the agent has died over it.
func (c *Child) DiesOver(t testing.TB, s *Stack, command protocol.Command) {
	t.Helper()
	check.Eventually(t, "the agent lives: the point was not hit", func() bool {
		_, _, err := s.Send(command)
		return err != nil
	})
	c.Died(t)
}

// Died waits for the end and demands that it was a SIGKILL of its own.
func (c *Child) Died(t testing.TB) {
	t.Helper()
	select {
	case <-c.Done:
	case <-time.After(check.Patience):
		t.Fatal("the agent lives: the point was not hit")
	}
	status, ok := c.Cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the agent ended with %s", c.Cmd.ProcessState)
	}
}

// Stopped waits until the agent stands still at its point.
func (c *Child) Stopped(t testing.TB) {
	t.Helper()
	check.Eventually(t, "the agent goes on: the point was not hit", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	})
}

// CrashStack is a stack of the test's own with PgBouncer, and no agent.
func CrashStack(t testing.TB) *Stack {
	t.Helper()
	s := Own(t)
	first := s.Child(t, "")
	s.StartBouncer(t.Context(), t)
	first.Kill()
	return s
}

// NoOrphans checks that PostgreSQL has exactly the roles and databases that the ledger knows.
func (s *Stack) NoOrphans(t testing.TB) {
	t.Helper()
	for what, query := range map[string]string{
		"roles": `SELECT coalesce(string_agg(coalesce(r.rolname, l.name), ' '), '') FROM
			(SELECT * FROM pg_roles WHERE rolname !~ '^(pg_|pgherd_|postgres$)') r FULL JOIN
			(SELECT name, oid FROM ledger.role UNION ALL SELECT name, oid FROM ledger.dead_role) l
			ON l.oid = r.oid AND l.name = r.rolname WHERE l.oid IS NULL OR r.oid IS NULL`,
		"databases": `SELECT coalesce(string_agg(coalesce(d.datname, l.name), ' '), '') FROM
			(SELECT * FROM pg_database WHERE datname !~ '^(template[01]|postgres|pgherd_maintenance)$') d
			FULL JOIN ledger.database l ON l.oid = d.oid AND d.datname = coalesce(l.isolated, l.name)
			WHERE l.oid IS NULL OR d.oid IS NULL`,
		"gates": `SELECT coalesce(string_agg(coalesce(g.login, l.name), ' '), '') FROM pooler.gate g
			FULL JOIN (SELECT * FROM ledger.role WHERE part IN ('owner', 'runtime', 'readonly', 'additional')) l ON l.name = g.login
			WHERE g.login IS NULL OR l.name IS NULL`,
	} {
		if orphans := s.One(t, query); orphans != "" {
			t.Errorf("%s without their other half: %s", what, orphans)
		}
	}
}

// PointsOf lists the points of a flow; a sample has one in three.
func PointsOf(t testing.TB, flow string) []string {
	t.Helper()
	var points []string
	for _, p := range agent.CrashPoints() {
		if strings.HasPrefix(p, "agent."+flow+".") {
			points = append(points, p)
		}
	}
	return sample.OneIn(t, 3, points)
}

// Freeze stops a child with SIGSTOP; thaw lets it go on.
func (c *Child) Freeze(t testing.TB) {
	t.Helper()
	check.NoError(t, c.Cmd.Process.Signal(syscall.SIGSTOP))
}

// Thaw has a child go on that was stopped.
func (c *Child) Thaw(t testing.TB) {
	t.Helper()
	check.NoError(t, c.Cmd.Process.Signal(syscall.SIGCONT))
}
