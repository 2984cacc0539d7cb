package agent_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// remembered makes PgBouncer remember, at both entries, that it did not get into PostgreSQL as a login.
func (s *stack) remembered(t testing.TB, l loginOf) {
	t.Helper()
	var conns []*sql.Conn
	for _, entry := range pooler.EntryNames(l.name) {
		conn := check.Must(s.pooled(t, entry, l.username, l.password).Conn(t.Context()))(t)
		db := s.pooled(t, entry, l.username, l.password)
		works(t, "before", db)
		_ = db.Close()
		conns = append(conns, conn)
	}
	check.Must(s.super.Exec(fmt.Sprintf("ALTER ROLE %q NOLOGIN", l.username)))(t)
	check.Must(s.super.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1", l.username))(t)
	for _, conn := range conns {
		check.Eventually(t, "PgBouncer still gets in", func() bool {
			_, err := conn.ExecContext(t.Context(), "SELECT 1")
			return err != nil
		})
	}
	check.Must(s.super.Exec(fmt.Sprintf("ALTER ROLE %q LOGIN", l.username)))(t)
}

// A rotation is done when the new password works, at the first attempt and at each entry: not while PgBouncer remembers that it
// did not get into PostgreSQL earlier.
func TestRotationWaitsUntilThePoolerGetsIn(t *testing.T) {
	overModelsWhole(t, testRotationWaitsUntilThePoolerGetsIn)
}

func testRotationWaitsUntilThePoolerGetsIn(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	for _, l := range []loginOf{s.opened(t, w.additional(1, role.ReadOnly)), s.another(t, w)} {
		s.remembered(t, l)
		next := l.renewed()
		proof := as[role.Proof](t, s.done(t, l.rotate(s.nextGeneration(), next)))
		if !proof.NewAccepted || !proof.OldRefused {
			t.Errorf("%+v", proof)
		}
		for _, entry := range pooler.EntryNames(l.name) {
			works(t, "the first log-in at "+entry, s.pooled(t, entry, next.username, next.password))
		}
	}
}

// Others may hold every connection of an entry, so that PgBouncer cannot even try: a rotation ends all the same.
func TestRotationEndsWhereOthersFillAnEntryThatFails(t *testing.T) {
	t.Parallel()
	overModelsWhole(t, testRotationEndsWhereOthersFillAnEntryThatFails)
}

func testRotationEndsWhereOthersFillAnEntryThatFails(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w := want(m)
	w.cap = 4 // one connection at the transaction entry
	s.createdWithRoles(t, w)
	l := s.opened(t, w.additional(1, role.ReadOnly))
	s.remembered(t, l)
	name, password := w.login(database.OwnerLogin)
	tx := check.Must(s.pooled(t, w.name+pooler.TransactionSuffix, name, password).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT 1"))(t)
	defer func() { _ = tx.Rollback() }()
	proof := as[role.Proof](t, s.done(t, l.rotate(2, l.renewed())))
	if !proof.NewAccepted || !proof.OldRefused {
		t.Errorf("%+v", proof)
	}
}
