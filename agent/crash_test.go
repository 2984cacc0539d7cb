package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// crashAt has an agent killed at a point while it carries out a command. acceptance/crash does so at every point, and has the
// service send the command again; the tests here are about what else may follow, or fail with the agent.
func (s *stack) crashAt(t *testing.T, point string, c protocol.Command) {
	t.Helper()
	victim := s.child(t, point)
	if _, reason, err := s.send(c); err == nil {
		t.Fatalf("the agent answered %q before the point was hit", reason)
	}
	victim.died(t)
}

// turn reports whether the n-th of several cases is tried at the i-th point: each is, but in "make test", where they take turns.
func turn(i, n, several int) bool { return sample.Whole() || i%several == n }

// A create that was interrupted after the database had its name has the most to undo. Of one that was interrupted before, with
// the database made, acceptance/crash has the close interrupted.
func TestCrashWhileClosing(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	all := []string{crash.CreateLogins, crash.CreateRenamed}
	for n, begun := range all {
		for i, point := range pointsOf(t, "close") {
			if !turn(i, n, len(all)) {
				continue
			}
			t.Run(begun+" "+point, func(t *testing.T) {
				w := want(database.Managed)
				s.crashAt(t, begun, w.create())
				s.crashAt(t, point, closing(w.operation))
				s.child(t, "")
				s.refusedFor(t, command.ReasonClosed, w.create())
				s.done(t, closing(w.operation))
				s.noTrace(t, w)
				s.noOrphans(t)
			})
		}
	}
}

// Anyone can grant to a role whose name they know, and so keep it from being dropped. That must not keep the close of an
// interrupted create from ending, nor the name from being free again.
func TestGrantsOfAStrangerDoNotKeepACreate(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	stranger, w := s.made(t, database.SingleLogin), want(database.Managed)
	maker.kill()
	s.crashAt(t, crash.CreateLogins, w.create())
	theirs := s.owner(t, stranger)
	check.Must(theirs.Exec(fmt.Sprintf("CREATE TABLE bait (id int); GRANT SELECT ON bait TO %q", w.name)))(t)
	open := s.openGrant(t, stranger, w.names().Runtime)

	next := s.child(t, "")
	s.done(t, closing(w.operation))
	s.noTrace(t, w)
	check.NoError(t, open.Rollback())
	const dead = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgh\\_dead\\_%' AND NOT rolcanlogin"
	check.Eventually(t, "not one dead role alone is left", func() bool { return s.one(t, dead) == "1" })
	s.noOrphans(t)
	again := want(database.Managed)
	again.name = w.name
	s.done(t, again.create())
	check.Must(theirs.Exec("DROP TABLE bait"))(t)
	next.kill()
	s.child(t, "")
	check.Eventually(t, "a dead role is left after the start", func() bool { return s.one(t, dead) == "0" })
	s.noOrphans(t)
}
