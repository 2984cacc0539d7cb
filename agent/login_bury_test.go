package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Anyone can grant to a role whose name they know, and names stand in pg_roles: also those of dead roles.

// openGrant is a stranger's transaction that grants to a role, and stays open.
func (s *stack) openGrant(t testing.TB, stranger wanted, role string) *sql.Tx {
	t.Helper()
	theirs := s.owner(t, stranger)
	check.Must(theirs.Exec("CREATE TABLE IF NOT EXISTS open_bait ()"))(t)
	tx := check.Must(theirs.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec(fmt.Sprintf("GRANT SELECT ON open_bait TO %q", role)))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// soonRemoved demands that a removal finds nothing and does not wait for what others do.
func (s *stack) soonRemoved(t testing.TB, l loginOf, generation int64) {
	t.Helper()
	began := time.Now()
	if found := s.removed(t, l.remove(generation)); len(found.List) > 0 {
		t.Errorf("the removal finds %+v", found)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the removal took %s", took)
	}
	s.gone(t, l)
}

func (s *stack) noDead(t testing.TB, oid string) {
	t.Helper()
	const query = "SELECT (SELECT count(*) FROM pg_roles WHERE oid = $1) + (SELECT count(*) FROM ledger.dead_role WHERE oid = $1)"
	check.Eventually(t, "the dead role is not dropped", func() bool { return s.one(t, query, oid) == "0" })
}

func (s *stack) oidOf(t testing.TB, l loginOf) string {
	t.Helper()
	return s.one(t, "SELECT oid FROM pg_roles WHERE rolname = $1", l.username)
}

// An open grant shows nowhere, and the drop of the role waits for it.
func TestOpenGrantOfAStrangerDoesNotKeepARole(t *testing.T) {
	overModelsWhole(t, testOpenGrantOfAStrangerDoesNotKeepARole)
}

func testOpenGrantOfAStrangerDoesNotKeepARole(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, stranger := s.madeWithRoles(t, m), s.made(t, database.SingleLogin)
	for i, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		l := s.opened(t, w.additional(i+1, role.ReadOnly))
		oid := s.oidOf(t, l)
		tx := s.openGrant(t, stranger, l.username)
		s.soonRemoved(t, l, 2)
		check.NoError(t, end(tx))
		check.Must(s.owner(t, stranger).Exec("DROP TABLE open_bait"))(t)
		s.noDead(t, oid)
	}
	s.noOrphans(t)
}

// What is there and gone at the look, as a grant that comes and goes: every drop is refused, and nothing can be told.
func TestWhatCannotBeToldDoesNotKeepARole(t *testing.T) {
	overModelsWhole(t, testWhatCannotBeToldDoesNotKeepARole)
}

func testWhatCannotBeToldDoesNotKeepARole(t *testing.T, m database.RoleModel) {
	s, w, l := roleStackOf(t, m, role.ReadOnly)
	oid := s.oidOf(t, l)
	const table = 999999 // there is none of this oid
	check.Must(s.super.Exec(`INSERT INTO pg_shdepend (dbid, classid, objid, objsubid, refclassid, refobjid, deptype)
		SELECT oid, 'pg_class'::regclass, $1, 0, 'pg_authid'::regclass, $2, 'a' FROM pg_database WHERE datname = $3`,
		table, oid, w.name))(t)
	s.soonRemoved(t, l, 2)
	check.Must(s.super.Exec("DELETE FROM pg_shdepend WHERE objid = $1 AND refobjid = $2", table, oid))(t)
	s.noDead(t, oid)
}

// A function that the role has made where a stranger let it changes the role, again and again, in transactions that stay open.
func TestFunctionOfTheRoleDoesNotKeepIt(t *testing.T) {
	overModelsWhole(t, testFunctionOfTheRoleDoesNotKeepIt)
}

func testFunctionOfTheRoleDoesNotKeepIt(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, stranger := s.madeWithRoles(t, m), s.made(t, database.SingleLogin)
	l := s.opened(t, w.additional(1, role.ReadOnly))
	oid, theirs := s.oidOf(t, l), s.owner(t, stranger)
	check.Must(theirs.Exec("CREATE SCHEMA shared; GRANT USAGE, CREATE ON SCHEMA shared TO " + l.username))(t)
	check.Must(theirs.Exec(fmt.Sprintf("GRANT CONNECT ON DATABASE %q TO %s", stranger.name, l.username)))(t)
	check.Must(s.direct(t, stranger.name, l.username, l.password).Exec(`CREATE FUNCTION shared.hold() RETURNS void LANGUAGE plpgsql
		SECURITY DEFINER AS 'BEGIN ALTER ROLE CURRENT_USER PASSWORD NULL; END'`))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var holders sync.WaitGroup
	for range 8 { // one has the role, and the next waits for it
		db := s.owner(t, stranger)
		holders.Go(func() {
			for ctx.Err() == nil {
				hold(ctx, db)
			}
		})
	}
	s.soonRemoved(t, l, 2)
	cancel()
	holders.Wait()
	check.Must(theirs.Exec("DROP SCHEMA shared CASCADE"))(t) // CONNECT on their database is taken from it without them
	s.noDead(t, oid)
}

// hold keeps the role in an open transaction until its session is ended.
func hold(ctx context.Context, db *sql.DB) {
	tx, err := db.BeginTx(ctx, nil)
	for err == nil {
		_, err = tx.ExecContext(ctx, "SELECT shared.hold(), pg_sleep(0.05)")
	}
	if tx != nil {
		_ = tx.Rollback()
	}
}

// Neither a start of the agent nor a later burial waits for who grants to a dead role.
func TestOpenGrantToADeadRoleHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	overModelsWhole(t, testOpenGrantToADeadRoleHoldsNobodyUp)
}

func testOpenGrantToADeadRoleHoldsNobodyUp(t *testing.T, m database.RoleModel) {
	s := crashStack(t)
	first := s.child(t, "")
	w, stranger := s.madeWithRoles(t, m), s.made(t, database.SingleLogin)
	theirs := s.owner(t, stranger)
	var oids []string
	for i := range 2 {
		l := s.opened(t, w.additional(i+1, role.ReadOnly))
		oids = append(oids, s.oidOf(t, l))
		check.Must(theirs.Exec(fmt.Sprintf("CREATE TABLE bait%d (); GRANT SELECT ON bait%[1]d TO %s", i, l.username)))(t)
		s.soonRemoved(t, l, 2)
		if i == 0 {
			buried := s.one(t, "SELECT rolname FROM pg_roles WHERE oid = $1", oids[0])
			s.openGrant(t, stranger, buried)
			check.Must(theirs.Exec("DROP TABLE bait0"))(t)
		}
	}
	first.kill()
	s.child(t, "")
	check.Must(theirs.Exec("DROP TABLE bait1"))(t)
	s.noDead(t, oids[1])
}
