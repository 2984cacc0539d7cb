package agenttest

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/sample"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Withdrawn has the owner take CONNECT from a role, or give it back.
func (s *Stack) Withdrawn(t testing.TB, l LoginOf, back bool) {
	t.Helper()
	statement := "REVOKE CONNECT ON DATABASE %q FROM %s"
	if back {
		statement = "GRANT CONNECT ON DATABASE %q TO %s"
	}
	owner := s.Owner(t, l.Wanted)
	defer owner.Close()
	check.Must(owner.Exec(fmt.Sprintf(statement, l.Name, l.Username)))(t)
}

// Models are those of the databases that can have additional roles. What a role is asked for and may do is the same in both; the
// roles of a database with a single login have their groups from an overlay, and CONNECT from the owner.
var Models = []database.RoleModel{database.Managed, database.SingleLogin}

// OverModels runs a test with roles of each model.
func OverModels(t *testing.T, test func(t *testing.T, m database.RoleModel)) {
	t.Helper()
	for _, m := range Models {
		t.Run(string(m), func(t *testing.T) { test(t, m) })
	}
}

// OverModelsWhole is overModels, but in "make test" only with those of managed databases.
func OverModelsWhole(t *testing.T, test func(t *testing.T, m database.RoleModel)) {
	t.Helper()
	if sample.Whole() {
		OverModels(t, test)
		return
	}
	test(t, database.Managed)
}

// RolesReady is what comes between the create of a database and that of its first additional role.
func (w Wanted) RolesReady() (commands []protocol.Command) {
	if role.ModelOf(w.Model).OwnerConnects {
		commands = append(commands, w.OptIn())
	}
	return commands
}

// MadeWithRoles makes a database that can have additional roles.
func (s *Stack) MadeWithRoles(t testing.TB, m database.RoleModel) Wanted {
	t.Helper()
	return s.CreatedWithRoles(t, Want(m))
}

// CreatedWithRoles makes a database, and readies it for additional roles.
func (s *Stack) CreatedWithRoles(t testing.TB, w Wanted) Wanted {
	t.Helper()
	s.Done(t, w.Create())
	for _, c := range w.RolesReady() {
		s.DoneInTheEnd(t, c)
	}
	return w
}

// ModelStack is Shared with a database of a test's own that can have additional roles.
func ModelStack(t testing.TB, m database.RoleModel) (*Stack, Wanted) {
	t.Helper()
	s := Shared(t)
	return s, s.MadeWithRoles(t, m)
}

// RoleStackOf is ModelStack with an additional role that may log in.
func RoleStackOf(t testing.TB, m database.RoleModel, profile role.AccessProfile) (*Stack, Wanted, LoginOf) {
	t.Helper()
	s, w := ModelStack(t, m)
	return s, w, s.Opened(t, w.Additional(1, profile))
}

// Connect has the owner grant CONNECT to a role that is prepared, where that is left to the owner.
func (s *Stack) Connect(t testing.TB, l LoginOf) {
	t.Helper()
	if role.ModelOf(l.Model).OwnerConnects {
		s.Withdrawn(t, l, true)
	}
}
