package agent_test

import (
	"database/sql"
	"testing"

	"github.com/pgherd/pgherd/core/database"
)

// made is a database that a test has made, with all its logins connected.
func (s *stack) made(t testing.TB, model database.RoleModel) wanted {
	t.Helper()
	w := want(model)
	s.done(t, w.create())
	return w
}

// databaseStack is realStack with a database of a test's own.
func databaseStack(t testing.TB) (*stack, wanted) {
	t.Helper()
	s := realStack(t)
	return s, s.made(t, database.Managed)
}

// connected opens one connection of every login in every way, and keeps it.
func (s *stack) connected(t testing.TB, w wanted) map[string]*sql.Conn {
	t.Helper()
	conns := map[string]*sql.Conn{}
	for _, l := range w.model.Logins() {
		for way, conn := range s.connectedAs(t, w.present(l)) {
			conns[string(l)+" "+way] = conn
		}
	}
	return conns
}
