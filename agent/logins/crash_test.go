package logins_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// getsInAgain is getsIn after PostgreSQL was down. Where PgBouncer has failed to get in for a login, it fails the next client of
// that login, however much later it comes, and only tries again because of it.
func getsInAgain(t testing.TB, s *agenttest.Stack, what string, l agenttest.LoginOf) {
	t.Helper()
	for way, db := range s.WaysOf(t, l) {
		var err error
		check.Eventually(t, what+" "+way+": PgBouncer does not get in", func() bool {
			_, err = db.ExecContext(t.Context(), "SELECT 1")
			return err == nil || !errors.Is(err, driver.ErrBadConn) && !strings.Contains(err.Error(), "server login has been failing")
		})
		if err != nil {
			t.Errorf("%s %s: %v", what, way, err)
		}
		_ = db.Close()
	}
}

// overACrash has a command about a login carried out by crashed, and looks at what came of it.
type overACrash func(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command))

// loginFlows are commands about logins, each with a test that has it done over a crash.
var loginFlows = []struct {
	points string
	test   overACrash
}{
	{"login.prepare", crashesPreparing}, {"login.open", crashesOpening}, {"login.change", crashesRotating},
	{"login.change", crashesShutting}, {"login.remove", crashesRemoving},
}

// PostgreSQL crashes at a point of a command, at which the agent stands still meanwhile; then the agent gets the command again.
// That the agent dies there itself is in acceptance/crash. The models take turns in "make test".
func TestPostgreSQLCrashesOverALogin(t *testing.T) {
	t.Parallel()
	s := agenttest.ForgetfulStack(t)
	for _, flow := range loginFlows {
		for i, point := range agenttest.PointsOf(t, flow.points) {
			for n, m := range agenttest.Models {
				if agenttest.Turn(i, n, len(agenttest.Models)) {
					t.Run(fmt.Sprintf("%s %s", point, m), func(t *testing.T) { crashesOver(t, s, m, point, flow.test) })
				}
			}
		}
	}
}

func crashesOver(
	t *testing.T, s *agenttest.Stack, m database.RoleModel, point string, test overACrash,
) {
	running := s.Child(t, "")
	defer func() { running.Kill() }()
	w := s.Made(t, m)
	for _, c := range w.RolesReady() {
		s.DoneInTheEnd(t, c)
	}
	test(t, s, w, func(c protocol.Command) {
		t.Helper()
		running.Kill()
		running = s.ServerCrash(t, point, c)
		up := time.Now()
		s.DoneInTheEnd(t, c)
		time.Sleep(time.Until(up.Add(agenttest.Remembered)))
	})
	s.NoOrphans(t)
}

func crashesPreparing(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command)) {
	l := w.Additional(1, role.ReadOnly)
	crashed(l.Prepare(1))
	s.GetsInNowhere(t, "prepared", l)
	s.Connect(t, l)
	s.DoneInTheEnd(t, l.Open(1))
	s.GetsIn(t, "opened", l)
}

func crashesOpening(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command)) {
	l := w.Additional(1, role.ReadWrite)
	s.DoneInTheEnd(t, l.Prepare(1))
	s.Connect(t, l)
	crashed(l.Open(1))
	getsInAgain(t, s, "opened", l)
}

func crashesRotating(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command)) {
	for _, l := range []agenttest.LoginOf{s.Opened(t, w.Additional(1, role.ReadOnly)), another(t, s, w)} {
		conns, next := s.ConnectedAs(t, l), l.Renewed()
		crashed(l.Rotate(2, next))
		agenttest.Dead(t, l.Username, conns)
		s.GetsInNowhere(t, "the old password", l)
		getsInAgain(t, s, "the new password", next)
		s.WantCondition(t, next, command.LoginInForce)
	}
}

// A login that is to be shut stays out from the moment where its gate was closed, whatever opens its database.
func crashesShutting(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command)) {
	revoked, expired := s.Opened(t, w.Additional(1, role.ReadOnly)), s.Opened(t, w.Additional(2, role.ReadOnly))
	for kind, l := range map[role.Kind]agenttest.LoginOf{role.Revocation: revoked, role.Expiry: expired} {
		conns := s.ConnectedAs(t, l)
		crashed(l.Shut(kind, 2))
		agenttest.Dead(t, l.Username, conns)
	}
	s.DoneInTheEnd(t, w.Access(2, false, true))
	s.DoneInTheEnd(t, w.Access(3, true, false))
	s.GetsInNowhere(t, "revoked", revoked)
	s.GetsInNowhere(t, "expired", expired)
	s.WantCondition(t, revoked, command.LoginDrifted)
	s.WantCondition(t, expired, command.LoginShut)
}

func crashesRemoving(t *testing.T, s *agenttest.Stack, w agenttest.Wanted, crashed func(protocol.Command)) {
	free, kept := s.Opened(t, w.Additional(1, role.ReadWrite)), s.Opened(t, w.Additional(2, role.Custom))
	conns := s.ConnectedAs(t, free)
	crashed(free.Remove(2))
	agenttest.Dead(t, "removed", conns)
	s.Gone(t, free)
	owner := s.Owner(t, w)
	check.Must(owner.Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + kept.Username))(t)
	removal := kept.Remove(2)
	crashed(removal)
	if found := s.Removed(t, removal); len(found.List) != 1 {
		t.Errorf("%+v", found)
	}
	s.GetsInNowhere(t, "kept", kept)
	check.Must(owner.Exec("DROP TABLE bait"))(t)
}
