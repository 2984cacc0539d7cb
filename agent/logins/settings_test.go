package logins_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Whoever knew the old password may have had the login's sessions fail at their beginning, in every database or in this one. The
// new password gets in all the same: nobody else could take such a setting back.
func TestRotationTakesBackWhatLocksALoginOut(t *testing.T) {
	agenttest.OverModelsWhole(t, testRotationTakesBackWhatLocksALoginOut)
}

func testRotationTakesBackWhatLocksALoginOut(t *testing.T, m database.RoleModel) {
	s, w, l := agenttest.RoleStackOf(t, m, role.ReadOnly)
	for _, l := range []agenttest.LoginOf{l, w.Present(database.OwnerLogin)} {
		check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec(fmt.Sprintf(`
			ALTER ROLE %[1]q SET work_mem = '5MB';
			ALTER ROLE %[1]q SET local_preload_libraries = 'nothing';
			ALTER ROLE %[1]q IN DATABASE %[2]q SET local_preload_libraries = 'nothing either'`, l.Username, w.Name)))(t)
		agenttest.Refused(t, "before", s.Direct(t, w.Name, l.Username, l.Password), "SELECT 1")
		next := l.Renewed()
		s.Done(t, l.Rotate(s.NextGeneration(), next))
		s.GetsIn(t, "after", next)
		if kept := settingsOf(t, s, l); kept != "work_mem=5MB" {
			t.Errorf("%s: what is kept of its settings is %s", l.Username, kept)
		}
	}
}

func settingsOf(t *testing.T, s *agenttest.Stack, l agenttest.LoginOf) string {
	t.Helper()
	return s.One(t, "SELECT coalesce(string_agg(array_to_string(setconfig, ' '), '; '), '') FROM pg_db_role_setting "+
		"WHERE setrole = $1::regrole", fmt.Sprintf("%q", l.Username))
}

// So it is with a limit for transactions in which no session begins, which PostgreSQL 17 and later know. One that lets sessions
// begin stays.
func TestRotationTakesBackALimitThatLetsNoSessionBegin(t *testing.T) {
	if agenttest.Major() < 17 {
		t.Skip("PostgreSQL 16 has no transaction_timeout")
	}
	agenttest.OverModelsWhole(t, func(t *testing.T, m database.RoleModel) {
		s, w, l := agenttest.RoleStackOf(t, m, role.ReadOnly)
		set := func(value string) {
			check.Must(s.Direct(t, w.Name, l.Username, l.Password).Exec(fmt.Sprintf(`
				ALTER ROLE %[1]q IN DATABASE %[2]q SET transaction_timeout = %[3]s;
				ALTER ROLE %[1]q SET transaction_timeout = %[3]s`, l.Username, w.Name, value)))(t)
		}
		rotate := func() {
			next := l.Renewed()
			s.Done(t, l.Rotate(s.NextGeneration(), next))
			s.GetsIn(t, "after", next)
			l = next
		}
		for _, value := range []string{"1", "'1ms'", "'2000us'", "'1e0'"} {
			set(value) // from now on a session begins by luck only
			if rotate(); settingsOf(t, s, l) != "" {
				t.Errorf("of %s, %s is kept", value, settingsOf(t, s, l))
			}
		}
		for _, value := range []string{"0", "60000", "'30s'", "'1.5 min'"} {
			set(value)
			rotate()
			if want := "transaction_timeout=" + strings.Trim(value, "'"); settingsOf(t, s, l) != want+"; "+want {
				t.Errorf("of %s, %q is kept", value, settingsOf(t, s, l))
			}
		}
	})
}

// An administrator may have set PostgreSQL's own limit of a login. A rotation restores it: one that no log-in can prove would go
// on for ever, and keep everybody else's from beginning.
func TestRotationRestoresTheLimitOfALogin(t *testing.T) {
	agenttest.OverModelsWhole(t, testRotationRestoresTheLimitOfALogin)
}

func testRotationRestoresTheLimitOfALogin(t *testing.T, m database.RoleModel) {
	s, w, l := agenttest.RoleStackOf(t, m, role.ReadOnly)
	const query = "SELECT rolconnlimit::text FROM pg_roles WHERE rolname = $1"
	for _, l := range []agenttest.LoginOf{l, another(t, s, w)} {
		made := s.One(t, query, l.Username)
		check.Must(s.Super.Exec(fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT 0", l.Username)))(t)
		next := l.Renewed()
		s.Done(t, l.Rotate(s.NextGeneration(), next))
		s.GetsIn(t, "after", next)
		if now := s.One(t, query, l.Username); now != made {
			t.Errorf("%s: the limit is %s, and was made as %s", l.Username, now, made)
		}
	}
}
