package agent_test

import (
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
)

// What is left of a former database of the same name keeps nobody out.
func TestNewDatabaseIsNotClosed(t *testing.T) {
	s, w := realStack(t), want(database.SingleLogin)
	check.Must(s.super.Exec("INSERT INTO pooler.shut VALUES ($1)", w.name))(t)
	s.done(t, w.create())
	s.getsIn(t, "new", w.present(database.OwnerLogin))
}
