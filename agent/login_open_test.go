package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/database"
)

func TestPreparedRoleStandsAndCannotLogIn(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	l := w.additional(1, protocol.ProfileReadOnly)
	s.done(t, l.prepare(1))
	s.getsInNowhere(t, "prepared", l)
	const query = `SELECT concat(rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication, rolinherit,
		has_database_privilege(oid, $2, 'CONNECT'), has_database_privilege(oid, $2, 'CREATE'),
		has_database_privilege(oid, $2, 'TEMPORARY')) FROM pg_roles WHERE rolname = $1`
	if got := s.one(t, query, l.username, l.name); got != "fffffftt"+"ff" {
		t.Errorf("attributes and privileges: %s", got)
	}
	s.done(t, l.prepare(1))
	s.done(t, w.access(2, false, true))
	s.done(t, w.access(3, true, false))
	s.getsInNowhere(t, "after a stop and a start", l)
	s.noOrphans(t)
}

func TestOpenedRoleHasTheRightsOfItsProfile(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	owner := s.owner(t, w)
	must(owner.Exec("CREATE TABLE early (id serial PRIMARY KEY); INSERT INTO early DEFAULT VALUES"))(t)
	allowed := map[string][]string{
		protocol.ProfileReadOnly: {"TABLE early", "TABLE late"},
		protocol.ProfileReadWrite: {
			"TABLE early", "TABLE late", "INSERT INTO early DEFAULT VALUES", "UPDATE late SET id = 7", "DELETE FROM late",
			"SELECT nextval('early_id_seq')",
		},
		protocol.ProfileCustom: {},
	}
	roles := map[string]loginOf{}
	for profile := range allowed {
		l := w.additional(len(roles)+1, profile)
		roles[profile] = s.opened(t, l)
		s.getsIn(t, profile, l)
	}
	must(owner.Exec("CREATE TABLE late (id int); INSERT INTO late VALUES (1)"))(t)
	for profile, l := range roles {
		db := s.pooled(t, l.name, l.username, l.password)
		for _, statement := range allowed[profile] {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %s: %v", profile, statement, err)
			}
		}
		forbidden := []string{"CREATE TABLE mine ()", "CREATE TEMP TABLE t ()", "CREATE SCHEMA s", "TRUNCATE early", "DROP TABLE late"}
		for other, statements := range allowed {
			if other == protocol.ProfileReadWrite && profile != other {
				forbidden = append(forbidden, statements[2:]...)
			}
		}
		if profile == protocol.ProfileCustom {
			forbidden = append(forbidden, "TABLE early")
		}
		for _, statement := range forbidden {
			denied(t, profile, db, statement)
		}
	}
	must(owner.Exec(fmt.Sprintf("GRANT SELECT ON early TO %s", roles[protocol.ProfileCustom].username)))(t)
	custom := roles[protocol.ProfileCustom]
	must(s.pooled(t, w.name, custom.username, custom.password).Exec("TABLE early"))(t)
}

func TestRolesFollowStopAndStart(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	l := s.opened(t, w.additional(1, protocol.ProfileReadWrite))
	held := map[string]func() error{}
	for way, db := range s.waysOf(t, l) {
		conn := must(db.Conn(t.Context()))(t)
		must(conn.ExecContext(t.Context(), "SELECT 1"))(t)
		held[way] = func() error { _, err := conn.ExecContext(t.Context(), "SELECT 1"); return err }
	}
	s.done(t, w.access(2, false, true))
	for way, use := range held {
		if use() == nil {
			t.Errorf("%s: still open", way)
		}
	}
	s.getsInNowhere(t, "stopped", l)
	late := w.additional(2, protocol.ProfileCustom)
	s.done(t, late.prepare(2))
	s.refusedFor(t, protocol.ReasonDatabaseClosed, late.open(2))
	s.done(t, w.access(3, true, false))
	s.getsIn(t, "started", l)
	s.done(t, late.open(2))
	s.getsIn(t, "opened after the start", late)
}

func TestWithdrawnConnectKeepsARoleShut(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	l := w.additional(1, protocol.ProfileReadOnly)
	s.done(t, l.prepare(1))
	owner := s.owner(t, w)
	must(owner.Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s", w.name, l.username)))(t)
	s.refusedFor(t, protocol.ReasonConnectRequired, l.open(1))
	s.done(t, l.prepare(1)) // does not grant what the owner took back
	s.refusedFor(t, protocol.ReasonConnectRequired, l.open(1))
	if may := s.one(t, "SELECT rolcanlogin FROM pg_roles WHERE rolname = $1", l.username); may != "false" {
		t.Error("the role may log in")
	}
	must(owner.Exec(fmt.Sprintf("GRANT CONNECT ON DATABASE %q TO %s", w.name, l.username)))(t)
	s.done(t, l.open(1))
	s.getsIn(t, "with CONNECT", l)
}

func TestRoleThatIsNotOursIsNeverTaken(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	l := w.additional(1, protocol.ProfileReadOnly)
	s.refusedFor(t, protocol.ReasonNotFound, l.open(1))
	must(s.super.Exec("CREATE ROLE " + l.username))(t)
	s.refusedFor(t, protocol.ReasonNameTaken, l.prepare(1))
	must(s.super.Exec("DROP ROLE " + l.username))(t)
	s.done(t, l.prepare(1))
	s.done(t, l.open(1))
	// Another role of the name, made behind the platform's back.
	must(s.owner(t, w).Exec(fmt.Sprintf("REVOKE CONNECT ON DATABASE %q FROM %s", w.name, l.username)))(t)
	must(s.super.Exec(fmt.Sprintf("DROP ROLE %s; CREATE ROLE %[1]s", l.username)))(t)
	s.refusedFor(t, protocol.ReasonNameTaken, w.additional(1, protocol.ProfileReadOnly).prepare(2))
	must(s.super.Exec("DROP ROLE " + l.username))(t)
	l.setup = newUUID()
	s.done(t, l.prepare(3))
	s.done(t, l.open(3))
	s.getsIn(t, "made again", l)
}

func TestLimitQueuesInThePooler(t *testing.T) {
	s := realStack(t)
	w := s.made(t, database.Managed)
	l := w.additional(1, protocol.ProfileReadOnly)
	l.limit = 2
	s.opened(t, l)
	var open []func()
	for _, entry := range []string{w.name, w.name + ".transaction"} {
		tx := must(s.pooled(t, entry, l.username, l.password).BeginTx(t.Context(), nil))(t)
		must(tx.Exec("SELECT 1"))(t)
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
	if err := <-third; err != nil {
		t.Errorf("who queued does not get in: %v", err)
	}
	const query = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"
	if n := s.one(t, query, l.username); n != "2" {
		t.Errorf("%s sessions", n)
	}
	open[0]()
}
