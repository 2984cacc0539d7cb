package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// discarding gives up the empty database.
func (c cloning) discarding() protocol.Command { return c.clone.discarding(c.clone.operation) }

// cloneStep is a command of a clone, with the points that an agent passes over it.
type cloneStep struct {
	command func(cloning) protocol.Command
	points  []string
}

func cloneSteps(t testing.TB) []cloneStep {
	without := func(points []string, out ...string) []string {
		return slices.DeleteFunc(points, func(p string) bool {
			return slices.ContainsFunc(out, func(o string) bool { return strings.Contains(p, o) })
		})
	}
	return []cloneStep{
		{cloning.ensure, without(pointsOf(t, "create"), crash.CreateProved)},
		{cloning.dump, without(pointsOf(t, "backup"), "verif", crash.BackupFailed)},
		{cloning.load, append(without(pointsOf(t, "restore"), ".switch.", ".discard."), crash.BackupFinished, crash.BackupReply)},
		{cloning.switching, without(pointsOf(t, "restore.switch"), crash.SwitchUndone)},
		{cloning.discarding, pointsOf(t, "restore.discard")},
		{cloning.proving, []string{crash.CreateAdmitted, crash.CreatePooled, crash.CreateProved, crash.CreateReply}},
	}
}

// has carries out a step to its end.
func (c cloning) has(t testing.TB, step cloneStep) {
	t.Helper()
	told := step.command(c)
	var state string
	check.Eventually(t, "the step does not end", func() bool {
		report := as[struct{ State, Message string }](t, c.done(t, told))
		state = report.State + " " + report.Message
		return report.State != string(command.LoadRunning)
	})
	if strings.HasPrefix(state, string(command.LoadFailed)) {
		t.Fatalf("%s: %s", told.Kind, state)
	}
}

// goesOn has whoever begins again get the clone done.
func (c cloning) goesOn(t *testing.T) {
	t.Helper()
	for _, step := range cloneSteps(t) {
		c.has(t, step)
	}
	c.noPassingFile(t)
	c.nothingOf(t, c.clone.operation)
	c.getsIn(t, "the clone", c.clone.present(database.OwnerLogin))
	if said := c.inDatabase(t, c.clone, "SELECT said FROM word"); said != "source" {
		t.Errorf("the word in the clone is %q", said)
	}
	c.refusedFor(t, command.ReasonCompleted, closing(c.clone.operation))
	c.noOrphans(t)
}

// isClosed has the operation closed: nothing is left of it.
func (c cloning) isClosed(t *testing.T) {
	t.Helper()
	c.done(t, closing(c.clone.operation))
	for _, step := range cloneSteps(t)[:3] {
		c.refusedFor(t, command.ReasonClosed, step.command(c))
	}
	c.nothingLeft(t)
}

func (c cloning) nothingLeft(t *testing.T) {
	t.Helper()
	c.noTrace(t, c.clone)
	c.noPassingFile(t)
	c.nothingOf(t, c.clone.operation)
	c.noOrphans(t)
}

// sourceOn makes a database to be cloned.
func (s *stack) sourceOn(t *testing.T) wanted {
	t.Helper()
	maker := s.child(t, "")
	source := s.made(t, database.Managed)
	check.Must(s.owner(t, source).Exec("CREATE TABLE word AS SELECT 'source' AS said"))(t)
	maker.kill()
	return source
}

// Whatever point an agent dies at while it clones: until the switch nobody gets into the clone, and closing the operation leaves
// nothing of it; whoever begins again gets it done, and nothing but the clone is left then.
func TestCrashWhileCloning(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	source := s.sourceOn(t)
	i := 0
	for n, step := range cloneSteps(t) {
		for _, point := range step.points {
			for closed := range 2 {
				if i++; turn(i, 0, 17) {
					t.Run(fmt.Sprintf("%d %s closed %d", n, point, closed), func(t *testing.T) {
						s.cloningOf(source).dies(t, n, point, closed == 1)
					})
				}
			}
		}
	}
	for i, point := range pointsOf(t, "close") {
		if turn(i, 2, 5) {
			t.Run(point, func(t *testing.T) { s.cloningOf(source).diesClosing(t, point) })
		}
	}
	t.Run("half made", func(t *testing.T) { s.cloningOf(source).isNotOpened(t) })
}

// isNotOpened has the making of the closed database gone on with by a command that is for an open one.
func (c cloning) isNotOpened(t *testing.T) {
	c.crashAt(t, crash.CreateRights, c.ensure())
	next := c.child(t, "")
	defer next.kill()
	c.refusedFor(t, command.ReasonFailed, c.proving())
	c.isShut(t, "half made")
	c.goesOn(t)
}

// dies kills an agent over the n-th step.
func (c cloning) dies(t *testing.T, n int, point string, closed bool) {
	all := cloneSteps(t)
	maker := c.child(t, "")
	for _, step := range all[:n] {
		c.has(t, step)
	}
	maker.kill()
	c.child(t, point).diesOver(t, c.stack, all[n].command(c))
	next := c.child(t, "")
	defer next.kill()
	c.getsIn(t, "the source", c.source.present(database.OwnerLogin))
	switched := n > 3 || isSwitched(point)
	if !switched {
		c.isShut(t, point)
	}
	switch {
	case closed && switched:
		c.refusedFor(t, command.ReasonCompleted, closing(c.clone.operation))
	case closed:
		c.isClosed(t)
		return
	}
	c.goesOn(t)
}

// diesClosing kills an agent while it undoes a clone that waits for its switch.
func (c cloning) diesClosing(t *testing.T, point string) {
	maker := c.child(t, "")
	for _, step := range cloneSteps(t)[:3] {
		c.has(t, step)
	}
	maker.kill()
	c.crashAt(t, point, closing(c.clone.operation))
	next := c.child(t, "")
	defer next.kill()
	c.isClosed(t)
	c.getsIn(t, "the source", c.source.present(database.OwnerLogin))
}

// PostgreSQL crashes, and takes back what has not waited for the disk: nobody gets into the clone before its switch all the same.
func TestPostgreSQLCrashesWhileCloning(t *testing.T) {
	t.Parallel()
	s := forgetfulStack(t)
	source := s.sourceOn(t)
	all := cloneSteps(t)
	for i, at := range []struct {
		step  int
		point string
	}{{0, crash.CreateLogins}, {0, crash.CreateRenamed}, {3, crash.SwitchAlone}, {0, crash.CreateReply}} {
		if !turn(i, 1, 4) {
			continue
		}
		t.Run(at.point, func(t *testing.T) {
			c := s.cloningOf(source)
			maker := s.child(t, "")
			for _, step := range all[:at.step] {
				c.has(t, step)
			}
			maker.kill()
			next := s.serverCrash(t, at.point, all[at.step].command(c))
			defer next.kill()
			time.Sleep(remembered)
			if at.step < 3 {
				c.isShut(t, at.point)
			}
			c.goesOn(t)
		})
	}
}
