package logins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// The owner may withdraw CONNECT when the agent has just seen that it is there: the log-in then shows that it is not, and the
// role is shut again.
func TestConnectWithdrawnWhileARoleIsOpened(t *testing.T) {
	s := survivalStack(t)
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		var withdraw func()
		port := relayed(t, s, atMessage("enabled = true", func() { withdraw() })) // the transaction that opens the role
		x := inProcess(t, s, port, asItIs)
		w := agenttest.Want(model)
		l := w.Additional(1, role.ReadOnly)
		check.Must(x.Execute(t.Context(), w.Create()))(t)
		if model == database.SingleLogin {
			check.Must(x.Execute(t.Context(), w.OptIn()))(t)
		}
		check.Must(x.Execute(t.Context(), l.Prepare(1)))(t)
		s.Withdrawn(t, l, true)
		done := false
		withdraw = func() { s.Withdrawn(t, l, false); done = true }
		for attempt := range 2 { // the second sees it at once
			_, err := x.Execute(t.Context(), l.Open(1))
			if no := ledger.AsRefusal(err); err == nil || no.Reason != command.ReasonConnectRequired {
				t.Errorf("attempt %d: %v, want that CONNECT is required", attempt, err)
			}
			getsInNowhereDirectly(t, s, l)
			isShut(t, s, l)
		}
		if !done {
			t.Fatal("nothing was withdrawn: the test shows nothing")
		}
		s.Withdrawn(t, l, true)
		check.Must(x.Execute(t.Context(), l.Open(1)))(t)
		s.GetsIn(t, "with CONNECT", l)
	}
}

// isShut demands that nothing of a login is open.
func isShut(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) {
	t.Helper()
	const open = `SELECT concat((SELECT rolcanlogin FROM pg_roles WHERE rolname = $1),
		(SELECT enabled FROM ledger.role WHERE name = $1), (SELECT open FROM pooler.gate WHERE login = $1))`
	if got := s.One(t, open, l.Username); got != "fff" {
		t.Errorf("%s may log in, is enabled, has an open gate: %s", l.Username, got)
	}
}

// A role of a database with a single login is admitted where TLS works.
func TestAdmissionNeedsTLS(t *testing.T) {
	t.Parallel()
	s := survivalStack(t)
	tls := errors.New("no TLS today")
	x := inProcess(t, s, s.PG.Port(), func(p *pooler.Pooler) poolerAPI { return withoutTLS{p, &tls} })
	w := agenttest.Want(database.SingleLogin)
	l := w.Additional(1, role.ReadOnly)
	for _, c := range []protocol.Command{w.Create(), w.OptIn(), l.Prepare(1)} {
		check.Must(x.Execute(t.Context(), c))(t)
	}
	s.Withdrawn(t, l, true)
	if _, err := x.Execute(t.Context(), l.Open(1)); ledger.AsRefusal(err).Reason != command.ReasonUnavailable {
		t.Errorf("without TLS: %v", err)
	}
	isShut(t, s, l)
	tls = nil
	check.Must(x.Execute(t.Context(), l.Open(1)))(t)
	s.GetsIn(t, "with TLS", l)
}

// withoutTLS is a PgBouncer whose TLS fails while there is an error.
type withoutTLS struct {
	*pooler.Pooler
	failing *error
}

func (w withoutTLS) EnterOutside(ctx context.Context) error {
	return errors.Join(*w.failing, w.Pooler.EnterOutside(ctx))
}

// A role without CONNECT is removed like any other. That it is shut like any other is in acceptance/crash.
func TestRoleWithoutConnectIsRemoved(t *testing.T) {
	agenttest.OverModelsWhole(t, func(t *testing.T, m database.RoleModel) {
		s, _, l := agenttest.RoleStackOf(t, m, role.Custom)
		conns := s.ConnectedAs(t, l)
		s.Withdrawn(t, l, false)
		s.WantCondition(t, l, command.LoginInForce)
		if found := s.Removed(t, l.Remove(2)); len(found.List) > 0 {
			t.Errorf("%+v", found)
		}
		agenttest.Dead(t, "removed", conns)
		s.Gone(t, l)
	})
}
