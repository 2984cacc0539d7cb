package databases_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// A create that was interrupted after the database had its name has the most to undo. Of one that was interrupted before, with
// the database made, acceptance/crash has the close interrupted.
func TestCrashWhileClosing(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	all := []string{crash.CreateLogins, crash.CreateRenamed}
	for n, begun := range all {
		for i, point := range agenttest.PointsOf(t, "close") {
			if !agenttest.Turn(i, n, len(all)) {
				continue
			}
			t.Run(begun+" "+point, func(t *testing.T) {
				w := agenttest.Want(database.Managed)
				s.CrashAt(t, begun, w.Create())
				s.CrashAt(t, point, agenttest.Closing(w.Operation))
				s.Child(t, "")
				s.RefusedFor(t, command.ReasonClosed, w.Create())
				s.Done(t, agenttest.Closing(w.Operation))
				s.NoTrace(t, w)
				s.NoOrphans(t)
			})
		}
	}
}

// Anyone can grant to a role whose name they know, and so keep it from being dropped. That must not keep the close of an
// interrupted create from ending, nor the name from being free again.
func TestGrantsOfAStrangerDoNotKeepACreate(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	stranger, w := s.Made(t, database.SingleLogin), agenttest.Want(database.Managed)
	maker.Kill()
	s.CrashAt(t, crash.CreateLogins, w.Create())
	theirs := s.Owner(t, stranger)
	check.Must(theirs.Exec(fmt.Sprintf("CREATE TABLE bait (id int); GRANT SELECT ON bait TO %q", w.Name)))(t)
	open := s.OpenGrant(t, stranger, w.Names().Runtime)

	next := s.Child(t, "")
	s.Done(t, agenttest.Closing(w.Operation))
	s.NoTrace(t, w)
	check.NoError(t, open.Rollback())
	const dead = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'pgh\\_dead\\_%' AND NOT rolcanlogin"
	check.Eventually(t, "not one dead role alone is left", func() bool { return s.One(t, dead) == "1" })
	s.NoOrphans(t)
	again := agenttest.Want(database.Managed)
	again.Name = w.Name
	s.Done(t, again.Create())
	check.Must(theirs.Exec("DROP TABLE bait"))(t)
	next.Kill()
	s.Child(t, "")
	check.Eventually(t, "a dead role is left after the start", func() bool { return s.One(t, dead) == "0" })
	s.NoOrphans(t)
}
