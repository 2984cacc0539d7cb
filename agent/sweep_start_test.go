package agent_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
)

// leftOver makes logins as jobs leave them. Their rights are those of a dump's login.
func (s *stack) leftOver(t testing.TB, w wanted, n int) (names []string) {
	t.Helper()
	agent := open(t, s.pg.URL("pgherd_maintenance"))
	check.Must(agent.Exec("SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit'"))(t)
	kinds := []struct{ prefix, mark string }{
		{"dump_", "pgherd dump login "}, {"verify_", "pgherd isolated copy "}, {"ext_", "pgherd extension login "},
	}
	for i := range n {
		k := kinds[i%len(kinds)]
		name := fmt.Sprintf("%s%032x", k.prefix, i)
		check.Must(agent.Exec(fmt.Sprintf(`CREATE ROLE %[1]s LOGIN BYPASSRLS; COMMENT ON ROLE %[1]s IS '%[2]s%[1]s';
			GRANT CONNECT ON DATABASE %[3]q TO %[1]s; GRANT %[4]q TO %[1]s WITH INHERIT TRUE, SET FALSE;
			GRANT pg_read_all_data, pg_use_reserved_connections TO %[1]s`, name, k.mark, w.name, w.names().Owner)))(t)
		if k.prefix == "verify_" {
			check.Must(agent.Exec("INSERT INTO ledger.copy VALUES ($1, 'verify', $2, $3, false)", name, newUUID(), w.id))(t)
		}
		names = append(names, name)
	}
	return names
}

// timed starts an agent and returns how long that took.
func (s *stack) timed(t testing.TB) (*child, time.Duration) {
	t.Helper()
	began := time.Now()
	return s.child(t, ""), time.Since(began)
}

// A customer has granted something to each of very many logins that backups have left, and holds what their drop needs: the rows
// of the logins too. An agent starts as if there were none, and takes from them, beside its work, what they may do.
func TestLeftOverLoginsDoNotHoldUpAStart(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	first := s.child(t, "")
	w := s.made(t, database.Managed)
	first.kill()
	usual, without := s.timed(t)
	usual.kill()

	names := s.leftOver(t, w, 60)
	all := strings.Join(names, ", ")
	owner := s.owner(t, w)
	check.Must(owner.Exec("CREATE TABLE granted (); CREATE TABLE held (); GRANT SELECT ON granted TO " + all))(t)
	holding := check.Must(owner.BeginTx(t.Context(), nil))(t)
	check.Must(holding.Exec("GRANT SELECT ON held TO " + all + "; LOCK TABLE granted"))(t)
	rows := check.Must(s.super.BeginTx(t.Context(), nil))(t)
	const others = "SELECT FROM pg_authid WHERE rolname ~ '^(dump|verify|ext)_' AND rolname <> $1 FOR UPDATE"
	check.Must(rows.Exec(others, names[0]))(t)
	stuck := check.Must(open(t, s.pg.URL("postgres")).BeginTx(t.Context(), nil))(t)
	check.Must(stuck.Exec("SELECT FROM pg_authid WHERE rolname = $1 FOR UPDATE", names[0]))(t)
	defer func() { _, _ = rows.Rollback(), stuck.Rollback() }()

	agent, with := s.timed(t)
	defer agent.kill()
	t.Logf("a start takes %s, and with the logins %s", without.Round(time.Millisecond), with.Round(time.Millisecond))
	if with > without+2*time.Second {
		t.Errorf("a start takes %s, and with the logins %s", without, with)
	}
	s.done(t, want(database.Managed).create())

	check.NoError(t, rows.Rollback())
	s.buried(t, len(names)-1)
	check.NoError(t, stuck.Rollback())
	s.buried(t, len(names))
	s.stripped(t)
	s.keptOnlyWhileGranted(t, owner, holding)
}

// buried waits until so many of the logins are buried.
func (s *stack) buried(t testing.TB, n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_' AND NOT rolcanlogin AND NOT rolbypassrls`
	check.Eventually(t, "not all logins are buried", func() bool { return s.one(t, query) == fmt.Sprint(n) })
}

// stripped waits until the buried logins have no right.
func (s *stack) stripped(t testing.TB) {
	t.Helper()
	const query = `SELECT (SELECT count(*) FROM pg_auth_members a JOIN pg_roles r ON r.oid IN (a.member, a.roleid)
			WHERE r.rolname ~ '^pgh_dead_' AND NOT (a.roleid = r.oid AND a.member = 'pgherd_agent'::regrole))
		+ (SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee
			WHERE r.rolname ~ '^pgh_dead_')`
	check.Eventually(t, "buried logins have rights", func() bool { return s.one(t, query) == "0" })
}

// keptOnlyWhileGranted ends the transaction and what was granted: the logins are dropped.
func (s *stack) keptOnlyWhileGranted(t testing.TB, owner *sql.DB, holding *sql.Tx) {
	t.Helper()
	check.NoError(t, holding.Rollback())
	check.Must(owner.Exec("DROP TABLE granted, held"))(t)
	check.Eventually(t, "buried logins are left", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^(pgh_dead|dump|verify|ext)_'") == "0"
	})
	check.Eventually(t, "dead roles are left in the ledger", func() bool {
		return s.one(t, "SELECT count(*) FROM ledger.dead_role") == "0"
	})
	s.noOrphans(t)
}

// An agent that was suspended over the start of another sweeps nothing that the other may have made under the same names.
func TestSweepOfAPredecessorIsRefused(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	password := check.Must(setup.ReadCredentials(s.config.CredentialsFile))(t).AgentPassword
	server := ledger.Server{Host: s.pg.Host(), Port: s.pg.Port(), Password: password, Instance: "one before"}
	before := check.Must(ledger.New(server, pooler.Settings{}, zap.NewNop()))(t)
	defer before.Stop()
	sweeper := artifact.New(artifact.Config{
		Host: s.pg.Host(), Port: s.pg.Port(), User: setup.AgentLogin, Password: password, Maintenance: setup.MaintenanceDatabase,
		InCharge: before.InCharge,
	}, nil)
	if err := sweeper.Sweep(t.Context()); sqlState(err) != "PGH01" {
		t.Errorf("%v", err)
	}
}

// Very many dead roles that somebody's open transaction is about to grant to keep no other one from being stripped and dropped.
func TestDeadRolesThatCannotBeDroppedKeepNoOther(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	s.child(t, "")
	stranger := s.made(t, database.SingleLogin)
	const many = 50 // more than two rounds
	agent := open(t, s.pg.URL(setup.MaintenanceDatabase))
	check.Must(agent.Exec("SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit'"))(t)
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("pgh_dead_%032x", i))
		check.Must(agent.Exec("CREATE ROLE " + names[i] + "; GRANT pg_read_all_data TO " + names[i]))(t)
	}
	theirs := s.owner(t, stranger)
	check.Must(theirs.Exec("CREATE TABLE bait ()"))(t)
	tx := check.Must(theirs.BeginTx(t.Context(), nil))(t)
	check.Must(tx.Exec("GRANT SELECT ON bait TO " + strings.Join(names[:many-1], ", ")))(t)
	check.Must(agent.Exec("INSERT INTO ledger.dead_role SELECT rolname, oid FROM pg_roles WHERE rolname ~ '^pgh_dead_'"))(t)
	left := func() string { return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_'") }
	check.Eventually(t, "the last role is not dropped", func() bool { return left() == fmt.Sprint(many-1) })
	s.stripped(t)
	check.NoError(t, tx.Rollback())
	check.Eventually(t, "the others are not dropped", func() bool { return left() == "0" })
	s.noOrphans(t)
}
