package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/role"
)

// What owners and operators do to logins is done by the superuser here, in the owner's name where the owner does it.

func (s realServer) LogInDirectly(database, username, password string) bool {
	db := must(sql.Open("postgres", s.on.PG.URLFor(username, password, database)))(s.t)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.PingContext(ctx) == nil
}

func (s realServer) Load(database, text string) bool {
	return s.runs(database, "SET SESSION AUTHORIZATION "+pq.QuoteIdentifier(database), text)
}

func (s realServer) HasTable(database, table string) bool {
	return s.runs(database, "SELECT FROM public."+pq.QuoteIdentifier(table))
}

func (s realServer) Rows(database, table string) (n int) {
	s.t.Helper()
	db := must(sql.Open("postgres", s.on.PG.URL(database)))(s.t)
	defer db.Close()
	noError(s.t, db.QueryRow("SELECT count(*) FROM public."+pq.QuoteIdentifier(table)).Scan(&n))
	return n
}

func (s realServer) May(username, privilege, table string) bool {
	do, known := map[string]string{
		"SELECT": "SELECT * FROM %s", "INSERT": "INSERT INTO %s VALUES (1)",
		"UPDATE": "UPDATE %s SET n = 2", "DELETE": "DELETE FROM %s",
		"USAGE": "SELECT nextval('%s_n_seq')", "CREATE": "CREATE TABLE of_%s ()", "TEMPORARY": "CREATE TEMPORARY TABLE of_%s ()",
	}[privilege]
	if !known {
		s.t.Fatalf("no privilege %s", privilege)
	}
	return s.runs(s.databaseOf(username), "SET SESSION AUTHORIZATION "+pq.QuoteIdentifier(username), fmt.Sprintf(do, table))
}

func (s realServer) SetConnect(username string, on bool) bool {
	database, do := s.databaseOf(username), "REVOKE CONNECT ON DATABASE %s FROM %s"
	if on {
		do = "GRANT CONNECT ON DATABASE %s TO %s"
	}
	return s.Load(database, fmt.Sprintf(do, pq.QuoteIdentifier(database), pq.QuoteIdentifier(username)))
}

func (s realServer) AddDependencyIn(database, username string, d role.Dependency) bool {
	login, table := pq.QuoteIdentifier(username), pq.QuoteIdentifier(d.Name)
	s.must(database, "SET SESSION AUTHORIZATION "+pq.QuoteIdentifier(database), "CREATE TABLE "+table+" (n int)")
	switch d.Kind {
	case role.OwnedDependency:
		return s.runs(database, "ALTER TABLE "+table+" OWNER TO "+login)
	case role.PolicyDependency:
		return s.Load(database, "CREATE POLICY "+table+" ON "+table+" TO "+login)
	default:
		return s.Load(database, "GRANT SELECT ON "+table+" TO "+login)
	}
}

func (s realServer) DropDependencies(username string) bool {
	return s.runs(s.databaseOf(username), `DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relname LIKE 'kept%'
		LOOP EXECUTE 'DROP TABLE ' || t; END LOOP; END $$`)
}

func (s realServer) DriftPassword(username, password string) bool {
	return s.runs("postgres", "ALTER ROLE "+pq.QuoteIdentifier(username)+" PASSWORD "+pq.QuoteLiteral(password))
}

func (s realServer) Empower(username string) bool {
	return s.runs("postgres", "ALTER ROLE "+pq.QuoteIdentifier(username)+" CREATEDB")
}

// Obstruct takes the agent's right to administer the login, or gives it back.
func (s realServer) Obstruct(username string, on bool) bool {
	login := pq.QuoteIdentifier(username)
	if on {
		return s.runs("postgres", "REVOKE ADMIN OPTION FOR "+login+" FROM pgherd_agent CASCADE")
	}
	return s.runs("postgres", "GRANT "+login+" TO pgherd_agent WITH ADMIN TRUE, INHERIT TRUE, SET TRUE")
}

func (s realServer) OverrideSetting(o command.RoleOverride) bool {
	login, value := pq.QuoteIdentifier(o.Role), pq.QuoteLiteral(o.Value)
	return s.runs("postgres", fmt.Sprintf("ALTER ROLE %s SET %s = %s", login, o.Setting, value))
}

// DropLogin takes CONNECT back as the owner: what the owner has granted, DROP OWNED of the superuser leaves.
func (s realServer) DropLogin(username string) bool {
	database, login := s.databaseOf(username), pq.QuoteIdentifier(username)
	return database != "" && s.SetConnect(username, false) && s.runs(database, "DROP OWNED BY "+login, "DROP ROLE "+login)
}

func (s realServer) AddForeignLogin(name string) {
	s.must("postgres", "CREATE ROLE "+pq.QuoteIdentifier(name)+" LOGIN")
}

// databaseOf finds the database of an additional role by its holder; empty where the server has no such login.
func (s realServer) databaseOf(username string) string {
	s.t.Helper()
	found := s.names(fmt.Sprintf(`SELECT datname FROM pg_database, pg_roles WHERE rolname = %s
		AND pg_get_userbyid(datdba) = regexp_replace(rolname, '_[cl][0-9]+$', '_holder')`, pq.QuoteLiteral(username)))
	return strings.Join(found, "")
}

// runs carries out statements in one session of the superuser, and reports whether all went well.
func (s realServer) runs(database string, statements ...string) bool {
	s.t.Helper()
	return s.run(database, statements...) == nil
}

func (s realServer) must(database string, statements ...string) {
	s.t.Helper()
	noError(s.t, s.run(database, statements...))
}

func (s realServer) run(database string, statements ...string) error {
	s.t.Helper()
	db, err := sql.Open("postgres", s.on.PG.URL(database))
	noError(s.t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
