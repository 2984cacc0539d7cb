package logins_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Every login of a database rotates: its connections end, nobody else's do, and only the new password works.
func TestRotationEndsEveryUseOfTheOldPassword(t *testing.T) {
	agenttest.OverModels(t, testRotationEndsEveryUseOfTheOldPassword)
}

func testRotationEndsEveryUseOfTheOldPassword(t *testing.T, m database.RoleModel) {
	s, w := agenttest.ModelStack(t, m)
	logins := []agenttest.LoginOf{
		s.Opened(t, w.Additional(1, role.ReadOnly)), s.Opened(t, w.Additional(2, role.Custom)),
	}
	for _, login := range m.Logins() {
		logins = append(logins, w.Present(login))
	}
	bystander := s.ConnectedAs(t, w.Additional(3, role.ReadWrite).OpenedBy(t, s))
	for _, l := range logins {
		conns := s.ConnectedAs(t, l)
		next := l.Renewed()
		proof := agenttest.As[role.Proof](t, s.Done(t, l.Rotate(2, next)))
		if want := (role.Proof{
			ClientsClosed: 2, SessionsEnded: 3, NoneLeft: true, OldRefused: true, NewAccepted: true,
		}); proof != want {
			t.Errorf("%s: %+v, want %+v", l.Username, proof, want)
		}
		agenttest.Dead(t, l.Username, conns)
		s.GetsInNowhere(t, "the old password of "+l.Username, l)
		s.GetsIn(t, "the new password of "+l.Username, next)
		s.WantCondition(t, next, command.LoginInForce)
		s.WantCondition(t, l, command.LoginDrifted)
	}
	for way, conn := range bystander {
		if _, err := conn.ExecContext(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("another role's %s connection: %v", way, err)
		}
	}
}

func getsInNowhereDirectly(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) {
	t.Helper()
	agenttest.Refused(t, "without CONNECT", s.Direct(t, l.Name, l.Username, l.Password), "SELECT 1")
}

func TestTheAgentAndTheHolderAreNoLogins(t *testing.T) {
	s, w := agenttest.DatabaseStack(t)
	for _, username := range []string{"pgherd_agent", w.Names().Holder} {
		l := w.Additional(1, role.ReadOnly)
		l.Username = username
		s.RefusedFor(t, command.ReasonNotFound, l.Rotate(2, l.Renewed()))
	}
}

// A role that an administrator has dropped and made again is none of ours: it is not taken over, and no gate lets it in.
func TestStrangerUnderALoginsNameIsKeptOut(t *testing.T) {
	s, w, l := agenttest.RoleStack(t, role.Custom)
	check.Must(s.Owner(t, w).Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s", w.Name, l.Username)))(t)
	check.Must(s.Super.Exec(fmt.Sprintf("DROP ROLE %s; CREATE ROLE %[1]s LOGIN PASSWORD '%s'; GRANT CONNECT ON DATABASE %q TO %[1]s",
		l.Username, l.Verifier, w.Name)))(t)
	s.WantCondition(t, l, command.LoginAbsent)
	s.RefusedFor(t, command.ReasonNotFound, l.Rotate(2, l.Renewed()))
	s.RefusedFor(t, command.ReasonNameTaken, w.Additional(1, role.Custom).Prepare(3))
	if found := agenttest.As[role.Dependencies](t, s.Done(t, l.Remove(4))); len(found.List) > 0 {
		t.Errorf("%+v", found)
	}
	agenttest.Refused(t, "a stranger", s.Pooled(t, w.Name, l.Username, l.Password), "SELECT 1")
	agenttest.Works(t, "the stranger itself", s.Direct(t, w.Name, l.Username, l.Password))
	check.Must(s.Super.Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s; DROP ROLE %[2]s", w.Name, l.Username)))(t)
}
