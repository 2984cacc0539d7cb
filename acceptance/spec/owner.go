package spec

import (
	"fmt"
	"strings"
)

var owning = []Scenario{
	{Name: "psql takes the connection string as it stands", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		made := s.Customer("pro").Creates("orders")
		version := fmt.Sprintf(" PostgreSQL %d.", made.PostgresVersion)
		out, err := s.SQL.Psql(made.ConnectionString, "SELECT current_user || ' ' || current_database() || ' ' || version()")
		s.That(err == nil && strings.HasPrefix(out, made.Name+" "+made.Name+version), "psql says %q (%v)", out, err)
	}},
	{Name: "an owner does what an owner needs", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		made := s.Customer("pro").Creates("orders")
		rows, err := s.SQL.Run(made.Login(),
			"CREATE SCHEMA sales", "CREATE TABLE sales.item (id int PRIMARY KEY, price numeric)",
			"CREATE TEMPORARY TABLE scratch (n int)", "CREATE VIEW cheap AS SELECT * FROM sales.item WHERE price < 10",
			"CREATE FUNCTION double(n int) RETURNS int LANGUAGE sql RETURN n * 2",
			"CREATE EXTENSION pgcrypto", "CREATE EXTENSION citext", "CREATE EXTENSION pg_trgm",
			"INSERT INTO sales.item SELECT n, n FROM generate_series(1, 100) AS n",
			"ANALYZE sales.item", "SELECT count(*) FROM cheap")
		s.OK(err)
		s.That(len(rows) == 1 && rows[0] == "9", "the view has %v", rows)
	}},
	{Name: "an owner reaches nothing beyond the database, directly or through the pooler", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made, other := ada.Creates("orders"), ada.Creates("other")
			for _, run := range []func(Login, ...string) ([]string, error){s.SQL.Run, s.SQL.Direct} {
				for _, statement := range forbidden(made, other) {
					_, err := run(made.Login(), statement)
					s.That(err != nil, "this worked: %s", statement)
					state := s.SQL.State(err)
					s.That(state == "42501" || state == "55006", "%s: SQLSTATE %q: %v", statement, state, err)
				}
				for _, inner := range []string{other.Name, "postgres", "template1", "template0", "pgherd_maintenance", "pgbouncer"} {
					elsewhere := made.Login()
					elsewhere.Database = inner
					_, err := run(elsewhere, "SELECT 1")
					s.That(err != nil, "it got in to %s", inner)
				}
			}
			s.Connects(made.Login())
		}},
	{Name: "nobody who logs in at run time is superuser, and only the agent follows databases", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			made := s.Customer("pro").Creates("orders")
			rows, err := s.SQL.Run(made.Login(), `SELECT rolname FROM pg_roles
				WHERE rolcanlogin AND rolname <> 'postgres' AND (rolsuper OR rolreplication AND rolname <> 'pgherd_agent')`)
			s.OK(err)
			s.That(len(rows) == 0, "they are superusers, or may follow databases: %v", rows)
		}},
	{Name: "a database has no more server connections than the plan says, and a client in excess waits its turn",
		Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
			made := s.Customer("pro").Creates("orders")
			rows := must(s.SQL.Run(made.Login(), "SELECT datconnlimit FROM pg_database WHERE datname = current_database()"))(s)
			s.That(len(rows) == 1 && rows[0] == "65", "the limit is %v; want the plan's 60 and 5 for the agent", rows)
		}},
}

// forbidden are statements that would take an owner beyond the database. Each must fail for want of a privilege; a rename or drop
// of the own database may fail because it is in use.
func forbidden(made, other Created) []string {
	name, next := quoted(made.Name), quoted(other.Name)
	return []string{
		"SELECT rolpassword FROM pg_authid", "SELECT pg_read_file('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x'",
		"COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_ls_dir('.')", "SELECT lo_import('/etc/passwd')",
		"CREATE ROLE eve LOGIN", "CREATE DATABASE eve",
		"CREATE FUNCTION trap() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; " +
			"CREATE EVENT TRIGGER trap ON ddl_command_end EXECUTE FUNCTION trap()",
		"ALTER DATABASE " + name + " RENAME TO eve", "DROP DATABASE " + next, "ALTER DATABASE " + name + " CONNECTION LIMIT -1",
		"ALTER DATABASE " + name + " SET work_mem = '1GB'", "ALTER DATABASE " + name + " OWNER TO " + name,
		"ALTER ROLE " + name + " CONNECTION LIMIT -1", "ALTER ROLE " + name + " SUPERUSER", "ALTER ROLE " + next + " PASSWORD 'x'",
		"SET ROLE postgres", "SET ROLE pgherd_agent", "SET ROLE " + next, "GRANT pg_read_all_data TO " + name,
		"ALTER SYSTEM SET work_mem = '1GB'", "CREATE EXTENSION file_fdw", "SELECT pg_reload_conf()",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pgherd_agent'",
	}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
