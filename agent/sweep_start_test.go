package agent_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/artifact"
	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/database"
)

// leftOver makes logins as backups leave them, and as earlier versions buried them. Their rights are those of a dump's login.
func (s *stack) leftOver(t testing.TB, w wanted, n int) (names []string) {
	t.Helper()
	agent := open(t, s.pg.URL("pgherd_maintenance"))
	must(agent.Exec("SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit'"))(t)
	kinds := []struct{ prefix, mark string }{
		{"dump_", "pgherd dump login "}, {"verify_", "pgherd isolated copy "}, {"dead_", "pgherd dead login "},
	}
	for i := range n {
		k := kinds[i%len(kinds)]
		name := fmt.Sprintf("%s%032x", k.prefix, i)
		must(agent.Exec(fmt.Sprintf(`CREATE ROLE %[1]s LOGIN BYPASSRLS; COMMENT ON ROLE %[1]s IS '%[2]s%[1]s';
			GRANT CONNECT ON DATABASE %[3]q TO %[1]s; GRANT %[4]q TO %[1]s WITH INHERIT TRUE, SET FALSE;
			GRANT pg_read_all_data, pg_use_reserved_connections TO %[1]s`, name, k.mark, w.name, w.names().Owner)))(t)
		names = append(names, name)
	}
	return names
}

// started starts an agent and returns how long that took.
func (s *stack) started(t testing.TB) (*child, time.Duration) {
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
	usual, without := s.started(t)
	usual.kill()

	names := s.leftOver(t, w, 60)
	all := strings.Join(names, ", ")
	owner := s.owner(t, w)
	must(owner.Exec("CREATE TABLE granted (); CREATE TABLE held (); GRANT SELECT ON granted TO " + all))(t)
	holding := must(owner.BeginTx(t.Context(), nil))(t)
	must(holding.Exec("GRANT SELECT ON held TO " + all + "; LOCK TABLE granted"))(t)
	rows := must(s.super.BeginTx(t.Context(), nil))(t)
	must(rows.Exec("SELECT FROM pg_authid WHERE rolname ~ '^(dump|verify|dead)_' AND rolname <> $1 FOR UPDATE", names[0]))(t)
	stuck := must(open(t, s.pg.URL("postgres")).BeginTx(t.Context(), nil))(t)
	must(stuck.Exec("SELECT FROM pg_authid WHERE rolname = $1 FOR UPDATE", names[0]))(t)
	defer func() { _, _ = rows.Rollback(), stuck.Rollback() }()

	agent, with := s.started(t)
	defer agent.kill()
	t.Logf("a start takes %s, and with the logins %s", without.Round(time.Millisecond), with.Round(time.Millisecond))
	if with > without+2*time.Second {
		t.Errorf("a start takes %s, and with the logins %s", without, with)
	}
	s.done(t, want(database.Managed).create())

	must(0, rows.Rollback())(t)
	s.buried(t, len(names)-1)
	must(0, stuck.Rollback())(t)
	s.buried(t, len(names))
	s.stripped(t)
	s.keptOnlyWhileGranted(t, owner, holding)
}

// buried waits until so many of the logins are buried.
func (s *stack) buried(t testing.TB, n int) {
	t.Helper()
	const query = `SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_' AND NOT rolcanlogin AND NOT rolbypassrls`
	for end := time.Now().Add(90 * time.Second); s.one(t, query) != fmt.Sprint(n); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s logins are buried, want %d", s.one(t, query), n)
		}
	}
}

// stripped waits until the buried logins have no right.
func (s *stack) stripped(t testing.TB) {
	t.Helper()
	const query = `SELECT (SELECT count(*) FROM pg_auth_members a JOIN pg_roles r ON r.oid IN (a.member, a.roleid)
			WHERE r.rolname ~ '^pgh_dead_' AND NOT (a.roleid = r.oid AND a.member = 'pgherd_agent'::regrole))
		+ (SELECT count(*) FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee
			WHERE r.rolname ~ '^pgh_dead_')`
	eventually(t, "buried logins have rights", func() bool { return s.one(t, query) == "0" })
}

// keptOnlyWhileGranted ends the transaction and what was granted: the logins are dropped.
func (s *stack) keptOnlyWhileGranted(t testing.TB, owner *sql.DB, holding *sql.Tx) {
	t.Helper()
	must(0, holding.Rollback())(t)
	must(owner.Exec("DROP TABLE granted, held"))(t)
	eventually(t, "buried logins are left", func() bool {
		return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^(pgh_dead|dump|verify|dead)_'") == "0"
	})
	eventually(t, "dead roles are left in the ledger", func() bool {
		return s.one(t, "SELECT count(*) FROM ledger.dead_role") == "0"
	})
	s.noOrphans(t)
}

// An agent that was suspended over the start of another sweeps nothing that the other may have made under the same names.
func TestSweepOfAPredecessorIsRefused(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	defer s.child(t, "").kill()
	password := must(setup.ReadCredentials(s.config.CredentialsFile))(t).AgentPassword
	server := executor.Server{Host: s.pg.Host(), Port: s.pg.Port(), Password: password, Instance: "one before"}
	before := must(executor.New(server, nil, pooler.Settings{}, zap.NewNop()))(t)
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
	defer s.child(t, "").kill()
	stranger := s.made(t, database.SingleLogin)
	const many = 50 // more than two rounds
	agent := open(t, s.pg.URL(setup.MaintenanceDatabase))
	must(agent.Exec("SET ROLE pgherd_agent; SET createrole_self_grant = 'set, inherit'"))(t)
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("pgh_dead_%032x", i))
		must(agent.Exec("CREATE ROLE " + names[i] + "; GRANT pg_read_all_data TO " + names[i]))(t)
	}
	theirs := s.owner(t, stranger)
	must(theirs.Exec("CREATE TABLE bait ()"))(t)
	tx := must(theirs.BeginTx(t.Context(), nil))(t)
	must(tx.Exec("GRANT SELECT ON bait TO " + strings.Join(names[:many-1], ", ")))(t)
	must(agent.Exec("INSERT INTO ledger.dead_role SELECT rolname, oid FROM pg_roles WHERE rolname ~ '^pgh_dead_'"))(t)
	left := func() string { return s.one(t, "SELECT count(*) FROM pg_roles WHERE rolname ~ '^pgh_dead_'") }
	eventually(t, "the last role is not dropped", func() bool { return left() == fmt.Sprint(many-1) })
	s.stripped(t)
	must(0, tx.Rollback())(t)
	eventually(t, "the others are not dropped", func() bool { return left() == "0" })
	s.noOrphans(t)
}
