package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// withdrawn has the owner take CONNECT from a role, or give it back.
func (s *stack) withdrawn(t testing.TB, l loginOf, back bool) {
	t.Helper()
	statement := "REVOKE CONNECT ON DATABASE %q FROM %s"
	if back {
		statement = "GRANT CONNECT ON DATABASE %q TO %s"
	}
	check.Must(s.owner(t, l.wanted).Exec(fmt.Sprintf(statement, l.name, l.username)))(t)
}

// The owner may withdraw CONNECT when the agent has just seen that it is there: the log-in then shows that it is not.
func TestConnectWithdrawnWhileARoleIsOpened(t *testing.T) {
	s := survivalStack(t)
	var withdraw func()
	port := s.relayed(t, atMessage("enabled = true", func() { withdraw() })) // the transaction that opens the role
	x := s.inProcess(t, port, asItIs)
	w := want(database.Managed)
	l := w.additional(1, role.ReadOnly)
	check.Must(x.Execute(t.Context(), w.create()))(t)
	check.Must(x.Execute(t.Context(), l.prepare(1)))(t)
	done := false
	withdraw = func() { s.withdrawn(t, l, false); done = true }
	for attempt := range 2 { // the second sees it at once
		_, err := x.Execute(t.Context(), l.open(1))
		if no := executor.AsRefusal(err); err == nil || no.Reason != command.ReasonConnectRequired {
			t.Errorf("attempt %d: %v, want that CONNECT is required", attempt, err)
		}
		s.getsInNowhereDirectly(t, l)
	}
	if !done {
		t.Fatal("nothing was withdrawn: the test shows nothing")
	}
	s.withdrawn(t, l, true)
	check.Must(x.Execute(t.Context(), l.open(1)))(t)
	s.getsIn(t, "with CONNECT", l)
}

// A role without CONNECT is shut and removed like any other.
func TestRoleWithoutConnectIsShutAndRemoved(t *testing.T) {
	s, w := databaseStack(t)
	for i, c := range []struct {
		want      role.Kind
		condition command.LoginCondition
	}{
		{role.Revocation, command.LoginDrifted}, {role.Expiry, command.LoginShut},
	} {
		l := s.opened(t, w.additional(i+1, role.ReadWrite))
		conns := s.connectedAs(t, l)
		s.withdrawn(t, l, false)
		proof := as[role.Proof](t, s.done(t, l.shut(c.want, 2)))
		if want := (role.Proof{ClientsClosed: 2, SessionsEnded: 3, NoneLeft: true, OldRefused: true}); proof != want {
			t.Errorf("%s: %+v, want %+v", c.want, proof, want)
		}
		dead(t, string(c.want), conns)
		s.wantCondition(t, l, c.condition)
		s.withdrawn(t, l, true)
		s.getsInNowhere(t, string(c.want)+", with CONNECT again", l)
	}
	ready := s.opened(t, w.additional(3, role.Custom))
	conns := s.connectedAs(t, ready)
	s.withdrawn(t, ready, false)
	s.wantCondition(t, ready, command.LoginInForce)
	if found := s.removed(t, ready.remove(2)); len(found.List) > 0 {
		t.Errorf("%+v", found)
	}
	dead(t, "removed", conns)
	s.gone(t, ready)
}
