package agent_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// remembered is for how long PgBouncer does not try again to get into PostgreSQL that was down: its server_login_retry, and some
// time to act.
const remembered = 1100 * time.Millisecond

// getsInAgain is getsIn after PostgreSQL was down. Where PgBouncer has failed to get in for a login, it fails the next client of
// that login, however much later it comes, and only tries again because of it.
func (s *stack) getsInAgain(t testing.TB, what string, l loginOf) {
	t.Helper()
	for way, db := range s.waysOf(t, l) {
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

// loginFlows are commands about logins, each with a test that has it done over a crash.
var loginFlows = []struct {
	points string
	test   func(t *testing.T, s *stack, w wanted, crashed func(protocol.Command))
}{
	{"login.prepare", crashesPreparing}, {"login.open", crashesOpening}, {"login.change", crashesRotating},
	{"login.change", crashesShutting}, {"login.remove", crashesRemoving},
}

// PostgreSQL crashes at a point of a command, at which the agent stands still meanwhile; then the agent gets the command again.
// That the agent dies there itself is in acceptance/crash. The models take turns in "make test".
func TestPostgreSQLCrashesOverALogin(t *testing.T) {
	t.Parallel()
	s := forgetfulStack(t)
	for _, flow := range loginFlows {
		for i, point := range pointsOf(t, flow.points) {
			for n, m := range models {
				if turn(i, n, len(models)) {
					t.Run(fmt.Sprintf("%s %s", point, m), func(t *testing.T) { s.crashesOver(t, m, point, flow.test) })
				}
			}
		}
	}
}

func (s *stack) crashesOver(
	t *testing.T, m database.RoleModel, point string, test func(*testing.T, *stack, wanted, func(protocol.Command)),
) {
	running := s.child(t, "")
	defer func() { running.kill() }()
	w := s.made(t, m)
	for _, c := range w.rolesReady() {
		s.doneInTheEnd(t, c)
	}
	test(t, s, w, func(c protocol.Command) {
		t.Helper()
		running.kill()
		running = s.serverCrash(t, point, c)
		up := time.Now()
		s.doneInTheEnd(t, c)
		time.Sleep(time.Until(up.Add(remembered)))
	})
	s.noOrphans(t)
}

func crashesPreparing(t *testing.T, s *stack, w wanted, crashed func(protocol.Command)) {
	l := w.additional(1, role.ReadOnly)
	crashed(l.prepare(1))
	s.getsInNowhere(t, "prepared", l)
	s.connect(t, l)
	s.doneInTheEnd(t, l.open(1))
	s.getsIn(t, "opened", l)
}

func crashesOpening(t *testing.T, s *stack, w wanted, crashed func(protocol.Command)) {
	l := w.additional(1, role.ReadWrite)
	s.doneInTheEnd(t, l.prepare(1))
	s.connect(t, l)
	crashed(l.open(1))
	s.getsInAgain(t, "opened", l)
}

func crashesRotating(t *testing.T, s *stack, w wanted, crashed func(protocol.Command)) {
	for _, l := range []loginOf{s.opened(t, w.additional(1, role.ReadOnly)), s.another(t, w)} {
		conns, next := s.connectedAs(t, l), l.renewed()
		crashed(l.rotate(2, next))
		dead(t, l.username, conns)
		s.getsInNowhere(t, "the old password", l)
		s.getsInAgain(t, "the new password", next)
		s.wantCondition(t, next, command.LoginInForce)
	}
}

// A login that is to be shut stays out from the moment where its gate was closed, whatever opens its database.
func crashesShutting(t *testing.T, s *stack, w wanted, crashed func(protocol.Command)) {
	revoked, expired := s.opened(t, w.additional(1, role.ReadOnly)), s.opened(t, w.additional(2, role.ReadOnly))
	for kind, l := range map[role.Kind]loginOf{role.Revocation: revoked, role.Expiry: expired} {
		conns := s.connectedAs(t, l)
		crashed(l.shut(kind, 2))
		dead(t, l.username, conns)
	}
	s.doneInTheEnd(t, w.access(2, false, true))
	s.doneInTheEnd(t, w.access(3, true, false))
	s.getsInNowhere(t, "revoked", revoked)
	s.getsInNowhere(t, "expired", expired)
	s.wantCondition(t, revoked, command.LoginDrifted)
	s.wantCondition(t, expired, command.LoginShut)
}

func crashesRemoving(t *testing.T, s *stack, w wanted, crashed func(protocol.Command)) {
	free, kept := s.opened(t, w.additional(1, role.ReadWrite)), s.opened(t, w.additional(2, role.Custom))
	conns := s.connectedAs(t, free)
	crashed(free.remove(2))
	dead(t, "removed", conns)
	s.gone(t, free)
	owner := s.owner(t, w)
	check.Must(owner.Exec("CREATE TABLE bait (); GRANT SELECT ON bait TO " + kept.username))(t)
	removal := kept.remove(2)
	crashed(removal)
	if found := s.removed(t, removal); len(found.List) != 1 {
		t.Errorf("%+v", found)
	}
	s.getsInNowhere(t, "kept", kept)
	check.Must(owner.Exec("DROP TABLE bait"))(t)
}
