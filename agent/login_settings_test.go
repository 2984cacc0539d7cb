package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// A login may have its own sessions fail at their beginning. Its password changes all the same: a change that never ends would
// keep everybody else's from beginning.
func TestLoginThatSpoilsItsSessionsRotates(t *testing.T) {
	overModelsWhole(t, testLoginThatSpoilsItsSessionsRotates)
}

func testLoginThatSpoilsItsSessionsRotates(t *testing.T, m database.RoleModel) {
	s, w := modelStack(t, m)
	for library, l := range map[string]loginOf{
		"nothing":      s.opened(t, w.additional(1, role.ReadOnly)),
		"../elsewhere": s.opened(t, w.additional(2, role.Custom)),
		"neither":      w.present(database.OwnerLogin),
	} {
		check.Must(s.direct(t, w.name, l.username, l.password).Exec(
			fmt.Sprintf("ALTER ROLE %q SET local_preload_libraries = '%s'", l.username, library)))(t)
		for range 3 { // with and without a failure that PgBouncer remembers
			next := l.renewed()
			proof := as[role.Proof](t, s.done(t, l.rotate(s.nextGeneration(), next)))
			if !proof.NoneLeft || !proof.OldRefused || !proof.NewAccepted || proof.ConnectMissing {
				t.Errorf("%s, %s: %+v", l.username, library, proof)
			}
			s.getsInNowhere(t, "the old password", l)
			l = next
		}
		s.wantCondition(t, l, command.LoginInForce)
	}
}

// A login may have its transactions wait until nobody writes in a serializable one, and somebody in another database do that for
// as long as they like.
func TestLoginThatWaitsForASafeSnapshotRotates(t *testing.T) {
	overModelsWhole(t, testLoginThatWaitsForASafeSnapshotRotates)
}

func testLoginThatWaitsForASafeSnapshotRotates(t *testing.T, m database.RoleModel) {
	s := realStack(t)
	w, elsewhere := s.madeWithRoles(t, m), s.made(t, database.Managed)
	accomplice := check.Must(s.owner(t, elsewhere).BeginTx(t.Context(), nil))(t)
	check.Must(accomplice.Exec("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TABLE written (); TABLE written"))(t)
	defer func() { _ = accomplice.Rollback() }()
	l := s.opened(t, w.additional(1, role.ReadOnly))
	check.Must(s.direct(t, w.name, l.username, l.password).Exec(`
		ALTER ROLE CURRENT_USER SET default_transaction_isolation = 'serializable';
		ALTER ROLE CURRENT_USER SET default_transaction_read_only = on;
		ALTER ROLE CURRENT_USER SET default_transaction_deferrable = on`))(t)
	for range 2 { // with and without such a setting in the pool
		next := l.renewed()
		proof := as[role.Proof](t, s.done(t, l.rotate(s.nextGeneration(), next)))
		if !proof.NoneLeft || !proof.OldRefused || !proof.NewAccepted || proof.ConnectMissing {
			t.Errorf("%+v", proof)
		}
		l = next
	}
	s.done(t, l.shut(role.Revocation, s.nextGeneration()))
}

// Whoever knew the old password may have had the login's sessions fail at their beginning, in every database or in this one. The
// new password gets in all the same: nobody else could take such a setting back.
func TestRotationTakesBackWhatLocksALoginOut(t *testing.T) {
	overModelsWhole(t, testRotationTakesBackWhatLocksALoginOut)
}

func testRotationTakesBackWhatLocksALoginOut(t *testing.T, m database.RoleModel) {
	s, w, l := roleStackOf(t, m, role.ReadOnly)
	for _, l := range []loginOf{l, w.present(database.OwnerLogin)} {
		check.Must(s.direct(t, w.name, l.username, l.password).Exec(fmt.Sprintf(`
			ALTER ROLE %[1]q SET work_mem = '5MB';
			ALTER ROLE %[1]q SET local_preload_libraries = 'nothing';
			ALTER ROLE %[1]q IN DATABASE %[2]q SET local_preload_libraries = 'nothing either'`, l.username, w.name)))(t)
		refused(t, "before", s.direct(t, w.name, l.username, l.password), "SELECT 1")
		next := l.renewed()
		s.done(t, l.rotate(s.nextGeneration(), next))
		s.getsIn(t, "after", next)
		const query = "SELECT array_to_string(setconfig, ' ') FROM pg_db_role_setting WHERE setrole = $1::regrole"
		if kept := s.one(t, query, fmt.Sprintf("%q", l.username)); kept != "work_mem=5MB" {
			t.Errorf("%s: what is kept of its settings is %s", l.username, kept)
		}
	}
}

// An administrator may have set PostgreSQL's own limit of a login. A rotation restores it: one that no log-in can prove would go
// on for ever, and keep everybody else's from beginning.
func TestRotationRestoresTheLimitOfALogin(t *testing.T) {
	overModelsWhole(t, testRotationRestoresTheLimitOfALogin)
}

func testRotationRestoresTheLimitOfALogin(t *testing.T, m database.RoleModel) {
	s, w, l := roleStackOf(t, m, role.ReadOnly)
	const query = "SELECT rolconnlimit::text FROM pg_roles WHERE rolname = $1"
	for _, l := range []loginOf{l, s.another(t, w)} {
		made := s.one(t, query, l.username)
		check.Must(s.super.Exec(fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT 0", l.username)))(t)
		next := l.renewed()
		s.done(t, l.rotate(s.nextGeneration(), next))
		s.getsIn(t, "after", next)
		if now := s.one(t, query, l.username); now != made {
			t.Errorf("%s: the limit is %s, and was made as %s", l.username, now, made)
		}
	}
}
