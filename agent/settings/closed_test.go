package settings_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// What is left of a former database of the same name keeps nobody out.
func TestNewDatabaseIsNotClosed(t *testing.T) {
	s, w := agenttest.Shared(t), agenttest.Want(database.SingleLogin)
	check.Must(s.Super.Exec("INSERT INTO pooler.shut VALUES ($1)", w.Name))(t)
	s.Done(t, w.Create())
	s.GetsIn(t, "new", w.Present(database.OwnerLogin))
}
