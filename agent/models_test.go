package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// models are those of the databases that can have additional roles. What a role is asked for and may do is the same in both; the
// roles of a database with a single login have their groups from an overlay, and CONNECT from the owner.
var models = []database.RoleModel{database.Managed, database.SingleLogin}

// overModels runs a test with roles of each model.
func overModels(t *testing.T, test func(t *testing.T, m database.RoleModel)) {
	t.Helper()
	for _, m := range models {
		t.Run(string(m), func(t *testing.T) { test(t, m) })
	}
}

// overModelsWhole is overModels, but in "make test" only with those of managed databases.
func overModelsWhole(t *testing.T, test func(t *testing.T, m database.RoleModel)) {
	t.Helper()
	if sample.Whole() {
		overModels(t, test)
		return
	}
	test(t, database.Managed)
}

// rolesReady is what comes between the create of a database and that of its first additional role.
func (w wanted) rolesReady() (commands []protocol.Command) {
	if role.ModelOf(w.model).OwnerConnects {
		commands = append(commands, w.optIn())
	}
	return commands
}

// madeWithRoles makes a database that can have additional roles.
func (s *stack) madeWithRoles(t testing.TB, m database.RoleModel) wanted {
	t.Helper()
	return s.createdWithRoles(t, want(m))
}

func (s *stack) createdWithRoles(t testing.TB, w wanted) wanted {
	t.Helper()
	s.done(t, w.create())
	for _, c := range w.rolesReady() {
		s.doneInTheEnd(t, c)
	}
	return w
}

// modelStack is realStack with a database of a test's own that can have additional roles.
func modelStack(t testing.TB, m database.RoleModel) (*stack, wanted) {
	t.Helper()
	s := realStack(t)
	return s, s.madeWithRoles(t, m)
}

// roleStackOf is modelStack with an additional role that may log in.
func roleStackOf(t testing.TB, m database.RoleModel, profile role.AccessProfile) (*stack, wanted, loginOf) {
	t.Helper()
	s, w := modelStack(t, m)
	return s, w, s.opened(t, w.additional(1, profile))
}

// openedAs makes a database with an additional role that may log in, without an agent.
func (s *stack) openedAs(t testing.TB, m database.RoleModel, x executing) loginOf {
	t.Helper()
	w := want(m)
	l := w.additional(1, role.ReadOnly)
	for _, c := range append(append([]protocol.Command{w.create()}, w.rolesReady()...), l.prepare(1)) {
		check.Must(x.Execute(t.Context(), c))(t)
	}
	s.connect(t, l)
	check.Must(x.Execute(t.Context(), l.open(1)))(t)
	return l
}

// connect has the owner grant CONNECT to a role that is prepared, where that is left to the owner.
func (s *stack) connect(t testing.TB, l loginOf) {
	t.Helper()
	if role.ModelOf(l.model).OwnerConnects {
		s.withdrawn(t, l, true)
	}
}

// another is a login of the database beside an additional role: where there is none but the owner, an additional one.
func (s *stack) another(t testing.TB, w wanted) loginOf {
	t.Helper()
	if w.model == database.Managed {
		return w.present(database.RuntimeLogin)
	}
	return s.opened(t, w.additional(9, role.Custom))
}
