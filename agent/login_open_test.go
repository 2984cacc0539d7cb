package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

func TestPreparedRoleHasNoAttributes(t *testing.T) { overModels(t, testPreparedRoleHasNoAttributes) }

func testPreparedRoleHasNoAttributes(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	l := w.additional(1, role.ReadOnly)
	s.done(t, l.prepare(1))
	const query = `SELECT concat(rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication, rolinherit,
		has_database_privilege(oid, $2, 'CONNECT'), has_database_privilege(oid, $2, 'CREATE'),
		has_database_privilege(oid, $2, 'TEMPORARY')) FROM pg_roles WHERE rolname = $1`
	connect := map[bool]string{true: "f", false: "t"}[role.ModelOf(m).OwnerConnects]
	if got := s.one(t, query, l.username, l.name); got != "fffffft"+connect+"ff" {
		t.Errorf("attributes and privileges: %s", got)
	}
	s.noOrphans(t)
}

func TestRoleThatIsNotOursIsNeverTaken(t *testing.T) {
	overModels(t, testRoleThatIsNotOursIsNeverTaken)
}

func testRoleThatIsNotOursIsNeverTaken(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	l := w.additional(1, role.ReadOnly)
	s.refusedFor(t, command.ReasonNotFound, l.open(1))
	check.Must(s.super.Exec("CREATE ROLE " + l.username))(t)
	s.refusedFor(t, command.ReasonNameTaken, l.prepare(1))
	check.Must(s.super.Exec("DROP ROLE " + l.username))(t)
	s.opened(t, l)
	// Another role of the name, made behind the platform's back.
	check.Must(s.owner(t, w).Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s", w.name, l.username)))(t)
	check.Must(s.super.Exec(fmt.Sprintf("DROP ROLE %s; CREATE ROLE %[1]s", l.username)))(t)
	s.refusedFor(t, command.ReasonNameTaken, w.additional(1, role.ReadOnly).prepare(2))
	check.Must(s.super.Exec("DROP ROLE " + l.username))(t)
	l.setup = newUUID()
	s.done(t, l.prepare(3))
	s.connect(t, l)
	s.done(t, l.open(3))
	s.getsIn(t, "made again", l)
}

func TestLimitQueuesInThePooler(t *testing.T) { overModelsWhole(t, testLimitQueuesInThePooler) }

func testLimitQueuesInThePooler(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	l := w.additional(1, role.ReadOnly)
	l.limit = 2
	s.opened(t, l)
	var open []func()
	for _, entry := range []string{w.name, w.name + ".transaction"} {
		tx := check.Must(s.pooled(t, entry, l.username, l.password).BeginTx(t.Context(), nil))(t)
		check.Must(tx.Exec("SELECT 1"))(t)
		open = append(open, func() { _ = tx.Rollback() })
	}
	third := make(chan error, 1)
	go func() {
		_, err := s.pooled(t, w.name+".transaction", l.username, l.password).ExecContext(t.Context(), "SELECT 1")
		third <- err
	}()
	select {
	case err := <-third:
		t.Errorf("a third server connection at a limit of two: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	open[1]()
	check.NoError(t, <-third, "who queued does not get in")
	const query = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"
	if n := s.one(t, query, l.username); n != "2" {
		t.Errorf("%s sessions", n)
	}
	open[0]()
}
