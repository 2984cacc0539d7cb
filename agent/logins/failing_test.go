package logins_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// remembered makes PgBouncer remember, at both entries, that it did not get into PostgreSQL as a login.
func remembered(t testing.TB, s *agenttest.Stack, l agenttest.LoginOf) {
	t.Helper()
	var conns []*sql.Conn
	for _, entry := range pooler.EntryNames(l.Name) {
		conn := check.Must(s.Pooled(t, entry, l.Username, l.Password).Conn(t.Context()))(t)
		db := s.Pooled(t, entry, l.Username, l.Password)
		agenttest.Works(t, "before", db)
		_ = db.Close()
		conns = append(conns, conn)
	}
	check.Must(s.Super.Exec(fmt.Sprintf("ALTER ROLE %q NOLOGIN", l.Username)))(t)
	check.Must(s.Super.Exec("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1", l.Username))(t)
	for _, conn := range conns {
		check.Eventually(t, "PgBouncer still gets in", func() bool {
			_, err := conn.ExecContext(t.Context(), "SELECT 1")
			return err != nil
		})
	}
	check.Must(s.Super.Exec(fmt.Sprintf("ALTER ROLE %q LOGIN", l.Username)))(t)
}

// A rotation is done when the new password works, at the first attempt and at each entry: not while PgBouncer remembers that it
// did not get into PostgreSQL earlier.
func TestRotationWaitsUntilThePoolerGetsIn(t *testing.T) {
	agenttest.OverModelsWhole(t, testRotationWaitsUntilThePoolerGetsIn)
}

func testRotationWaitsUntilThePoolerGetsIn(t *testing.T, m database.RoleModel) {
	s, w := agenttest.ModelStack(t, m)
	for _, l := range []agenttest.LoginOf{s.Opened(t, w.Additional(1, role.ReadOnly)), another(t, s, w)} {
		remembered(t, s, l)
		next := l.Renewed()
		proof := agenttest.As[role.Proof](t, s.Done(t, l.Rotate(s.NextGeneration(), next)))
		if !proof.NewAccepted || !proof.OldRefused {
			t.Errorf("%+v", proof)
		}
		for _, entry := range pooler.EntryNames(l.Name) {
			agenttest.Works(t, "the first log-in at "+entry, s.Pooled(t, entry, next.Username, next.Password))
		}
	}
}

// Others may hold every connection of an entry, so that PgBouncer cannot even try: a rotation ends all the same.
func TestRotationEndsWhereOthersFillAnEntryThatFails(t *testing.T) {
	t.Parallel()
	agenttest.OverModelsWhole(t, testRotationEndsWhereOthersFillAnEntryThatFails)
}

func testRotationEndsWhereOthersFillAnEntryThatFails(t *testing.T, m database.RoleModel) {
	s := agenttest.Shared(t)
	w := agenttest.Want(m)
	w.Cap = 4 // one connection at the transaction entry
	s.CreatedWithRoles(t, w)
	l := s.Opened(t, w.Additional(1, role.ReadOnly))
	remembered(t, s, l)
	name, password := w.Login(database.OwnerLogin)
	tx := check.Must(s.Pooled(t, w.Name+pooler.TransactionSuffix, name, password).BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("SELECT 1"))(t)
	defer func() { _ = tx.Rollback() }()
	proof := agenttest.As[role.Proof](t, s.Done(t, l.Rotate(2, l.Renewed())))
	if !proof.NewAccepted || !proof.OldRefused {
		t.Errorf("%+v", proof)
	}
}
