package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/protocol"
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
	owner := s.owner(t, l.wanted)
	defer owner.Close()
	check.Must(owner.Exec(fmt.Sprintf(statement, l.name, l.username)))(t)
}

// The owner may withdraw CONNECT when the agent has just seen that it is there: the log-in then shows that it is not, and the
// role is shut again.
func TestConnectWithdrawnWhileARoleIsOpened(t *testing.T) {
	s := survivalStack(t)
	for _, model := range []database.RoleModel{database.Managed, database.SingleLogin} {
		var withdraw func()
		port := s.relayed(t, atMessage("enabled = true", func() { withdraw() })) // the transaction that opens the role
		x := s.inProcess(t, port, asItIs)
		w := want(model)
		l := w.additional(1, role.ReadOnly)
		check.Must(x.Execute(t.Context(), w.create()))(t)
		if model == database.SingleLogin {
			check.Must(x.Execute(t.Context(), w.optIn()))(t)
		}
		check.Must(x.Execute(t.Context(), l.prepare(1)))(t)
		s.withdrawn(t, l, true)
		done := false
		withdraw = func() { s.withdrawn(t, l, false); done = true }
		for attempt := range 2 { // the second sees it at once
			_, err := x.Execute(t.Context(), l.open(1))
			if no := ledger.AsRefusal(err); err == nil || no.Reason != command.ReasonConnectRequired {
				t.Errorf("attempt %d: %v, want that CONNECT is required", attempt, err)
			}
			s.getsInNowhereDirectly(t, l)
			s.isShut(t, l)
		}
		if !done {
			t.Fatal("nothing was withdrawn: the test shows nothing")
		}
		s.withdrawn(t, l, true)
		check.Must(x.Execute(t.Context(), l.open(1)))(t)
		s.getsIn(t, "with CONNECT", l)
	}
}

// isShut demands that nothing of a login is open.
func (s *stack) isShut(t testing.TB, l loginOf) {
	t.Helper()
	const open = `SELECT concat((SELECT rolcanlogin FROM pg_roles WHERE rolname = $1),
		(SELECT enabled FROM ledger.role WHERE name = $1), (SELECT open FROM pooler.gate WHERE login = $1))`
	if got := s.one(t, open, l.username); got != "fff" {
		t.Errorf("%s may log in, is enabled, has an open gate: %s", l.username, got)
	}
}

// A role of a database with a single login is admitted where TLS works.
func TestAdmissionNeedsTLS(t *testing.T) {
	t.Parallel()
	s := survivalStack(t)
	tls := errors.New("no TLS today")
	x := s.inProcess(t, s.pg.Port(), func(p *pooler.Pooler) poolerAPI { return withoutTLS{p, &tls} })
	w := want(database.SingleLogin)
	l := w.additional(1, role.ReadOnly)
	for _, c := range []protocol.Command{w.create(), w.optIn(), l.prepare(1)} {
		check.Must(x.Execute(t.Context(), c))(t)
	}
	s.withdrawn(t, l, true)
	if _, err := x.Execute(t.Context(), l.open(1)); ledger.AsRefusal(err).Reason != command.ReasonUnavailable {
		t.Errorf("without TLS: %v", err)
	}
	s.isShut(t, l)
	tls = nil
	check.Must(x.Execute(t.Context(), l.open(1)))(t)
	s.getsIn(t, "with TLS", l)
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
	overModelsWhole(t, func(t *testing.T, m database.RoleModel) {
		s, _, l := roleStackOf(t, m, role.Custom)
		conns := s.connectedAs(t, l)
		s.withdrawn(t, l, false)
		s.wantCondition(t, l, command.LoginInForce)
		if found := s.removed(t, l.remove(2)); len(found.List) > 0 {
			t.Errorf("%+v", found)
		}
		dead(t, "removed", conns)
		s.gone(t, l)
	})
}
