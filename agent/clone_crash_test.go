package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// discarding gives up the empty database.
func (c cloning) discarding() protocol.Command { return c.clone.Discarding(c.clone.Operation) }

// steps are the commands of a clone. The switch is the fourth.
func (c cloning) steps() []protocol.Command {
	return []protocol.Command{c.ensure(), c.dump(), c.load(), c.switching(), c.discarding(), c.proving()}
}

// has carries out a step to its end. Soon after a crash it may have to come later.
func (c cloning) has(t testing.TB, step protocol.Command) {
	t.Helper()
	var state string
	check.Eventually(t, "the step does not end", func() bool {
		result, reason, err := c.Send(step)
		if err == nil && agenttest.IsForLater(reason) {
			return false
		}
		if err != nil || reason != "" {
			t.Fatalf("%s: %s %v", step.Kind, reason, err)
		}
		report := agenttest.As[struct{ State, Message string }](t, result)
		state = report.State + " " + report.Message
		return report.State != string(command.LoadRunning)
	})
	if strings.HasPrefix(state, string(command.LoadFailed)) {
		t.Fatalf("%s: %s", step.Kind, state)
	}
}

// goesOn has whoever begins again get the clone done.
func (c cloning) goesOn(t *testing.T) {
	t.Helper()
	for _, step := range c.steps() {
		c.has(t, step)
	}
	c.noPassingFile(t)
	c.NothingOf(t, c.clone.Operation)
	c.GetsIn(t, "the clone", c.clone.Present(database.OwnerLogin))
	if said := c.InDatabase(t, c.clone, "SELECT said FROM word"); said != "source" {
		t.Errorf("the word in the clone is %q", said)
	}
	c.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(c.clone.Operation))
	c.NoOrphans(t)
}

// isClosed has the operation closed: nothing is left of it.
func (c cloning) isClosed(t *testing.T) {
	t.Helper()
	c.Done(t, agenttest.Closing(c.clone.Operation))
	for _, step := range c.steps()[:3] {
		c.RefusedFor(t, command.ReasonClosed, step)
	}
	c.NoTrace(t, c.clone)
	c.noPassingFile(t)
	c.NothingOf(t, c.clone.Operation)
	c.NoOrphans(t)
}

// sourceOn makes a database to be cloned.
func sourceOn(t *testing.T, s *agenttest.Stack) agenttest.Wanted {
	t.Helper()
	maker := s.Child(t, "")
	source := s.Made(t, database.Managed)
	check.Must(s.Owner(t, source).Exec("CREATE TABLE word AS SELECT 'source' AS said"))(t)
	maker.Kill()
	return source
}

// An agent dies over a step of a clone, or PostgreSQL crashes and takes back what has not waited for the disk. Until the switch
// nobody gets into the clone, and closing the operation leaves nothing of it; whoever begins again gets it done. Each point of
// these commands has its case in acceptance/crash, over other flows; the points here are one or two of each step.
func TestCrashWhileCloning(t *testing.T) {
	t.Parallel()
	s := agenttest.ForgetfulStack(t)
	source := sourceOn(t, s)
	i := 0
	for _, at := range []struct {
		step  int
		point string
	}{
		{0, crash.CreateLogins}, {0, crash.CreateRenamed}, {0, crash.CreateReply}, {1, "agent.backup.after-manifest-moved"},
		{2, "agent.restore.granted"}, {2, crash.BackupFinished}, {3, crash.SwitchAlone}, {3, crash.SwitchRenamed},
		{4, crash.DiscardPassing}, {5, crash.CreateProved},
	} {
		for _, then := range []string{"goes on", "closed", "PostgreSQL"} {
			if i++; agenttest.Turn(i, 0, 7) && (then != "PostgreSQL" || at.step == 0 || at.step == 3) {
				t.Run(at.point+" "+then, func(t *testing.T) { cloningOf(s, source).dies(t, at.step, at.point, then) })
			}
		}
	}
	t.Run("half made", func(t *testing.T) { cloningOf(s, source).isNotOpened(t) })
}

// isNotOpened has the making of the closed database gone on with by a command that is for an open one.
func (c cloning) isNotOpened(t *testing.T) {
	c.CrashAt(t, crash.CreateRights, c.ensure())
	next := c.Child(t, "")
	defer next.Kill()
	c.RefusedFor(t, command.ReasonFailed, c.proving())
	c.isShut(t, "half made")
	c.goesOn(t)
}

// dies kills the agent, or PostgreSQL, over the n-th step.
func (c cloning) dies(t *testing.T, n int, point, then string) {
	maker := c.Child(t, "")
	for _, step := range c.steps()[:n] {
		c.has(t, step)
	}
	maker.Kill()
	var next *agenttest.Child
	if then == "PostgreSQL" {
		next = c.ServerCrash(t, point, c.steps()[n])
		time.Sleep(agenttest.Remembered)
	} else {
		c.Child(t, point).DiesOver(t, c.Stack, c.steps()[n])
		next = c.Child(t, "")
	}
	defer next.Kill()
	c.GetsIn(t, "the source", c.source.Present(database.OwnerLogin))
	switched := n > 3 || point == crash.SwitchRenamed || n == 3 && then == "PostgreSQL" // which was sent again
	if !switched {
		c.isShut(t, point)
	}
	switch {
	case then == "closed" && switched:
		c.RefusedFor(t, command.ReasonCompleted, agenttest.Closing(c.clone.Operation))
	case then == "closed":
		c.isClosed(t)
		return
	}
	c.goesOn(t)
}
