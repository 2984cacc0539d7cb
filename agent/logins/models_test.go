package logins_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// openedAs makes a database with an additional role that may log in, without an agent.
func openedAs(t testing.TB, s *agenttest.Stack, m database.RoleModel, x executing) agenttest.LoginOf {
	t.Helper()
	w := agenttest.Want(m)
	l := w.Additional(1, role.ReadOnly)
	for _, c := range append(append([]protocol.Command{w.Create()}, w.RolesReady()...), l.Prepare(1)) {
		check.Must(x.Execute(t.Context(), c))(t)
	}
	s.Connect(t, l)
	check.Must(x.Execute(t.Context(), l.Open(1)))(t)
	return l
}

// another is a login of the database beside an additional role: where there is none but the owner, an additional one.
func another(t testing.TB, s *agenttest.Stack, w agenttest.Wanted) agenttest.LoginOf {
	t.Helper()
	if w.Model == database.Managed {
		return w.Present(database.RuntimeLogin)
	}
	return s.Opened(t, w.Additional(9, role.Custom))
}
