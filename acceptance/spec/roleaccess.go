package spec

import (
	"strings"
)

// literal is a text in SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// stock is what an owner has before and after there are roles.
var stock = []string{
	"CREATE TABLE %.item (id int PRIMARY KEY, price numeric)", "INSERT INTO %.item VALUES (1, 9.99)", "CREATE SEQUENCE %.ticket",
	"CREATE VIEW %.cheap AS SELECT * FROM %.item WHERE price < 10",
}

// stocks has the owner make tables in a schema.
func (s *Stage) stocks(db Created, schema string) {
	s.Helper()
	var statements []string
	for _, statement := range stock {
		statements = append(statements, strings.ReplaceAll(statement, "%", schema))
	}
	must(s.SQL.Run(db.Login(), statements...))(s)
}

// access is what each profile may do with an owner's tables.
var access = map[string]struct{ may, mayNot []string }{
	"read_only": {
		may: []string{"SELECT * FROM %.item", "SELECT * FROM %.cheap"},
		mayNot: []string{
			"INSERT INTO %.item VALUES (2, 1)", "UPDATE %.item SET price = 0", "DELETE FROM %.item", "SELECT nextval('%.ticket')",
			"TRUNCATE %.item",
		},
	},
	"read_write": {
		may: []string{
			"SELECT * FROM %.item", "INSERT INTO %.item VALUES (2, 1)", "UPDATE %.item SET price = 3 WHERE id = 2",
			"DELETE FROM %.item WHERE id = 2", "SELECT nextval('%.ticket')", "SELECT last_value FROM %.ticket",
		},
		mayNot: []string{
			"TRUNCATE %.item", "CREATE INDEX ON %.item (price)", "ALTER TABLE %.item ADD COLUMN n int", "DROP TABLE %.item",
		},
	},
	"custom": {
		mayNot: []string{
			"SELECT * FROM %.item", "INSERT INTO %.item VALUES (2, 1)", "UPDATE %.item SET price = 0", "DELETE FROM %.item",
			"SELECT nextval('%.ticket')", "SELECT * FROM %.cheap",
		},
	},
}

// neither is what no profile allows.
func neither(db Created) []string {
	name, other := quoted(db.Name), "_rt"
	if db.Model == "single_login" {
		other = "_holder"
	}
	return []string{
		"CREATE TABLE public.mine (n int)", "CREATE SCHEMA mine", "CREATE TEMPORARY TABLE scratch (n int)", "CREATE EXTENSION citext",
		"CREATE FUNCTION public.f() RETURNS int LANGUAGE sql RETURN 1", "SET ROLE " + name, "ALTER ROLE " + name + " PASSWORD 'x'",
		"SET ROLE pgh_" + compact(db.ID) + other, "SET ROLE pgherd_agent", "CREATE ROLE eve", "SELECT rolpassword FROM pg_authid",
		"ALTER DATABASE " + name + " SET work_mem = '1GB'",
	}
}

var usingRoles = []Scenario{
	{Name: "a role may do what its profile says, with tables that were there, tables made later, and in every schema", Both: true,
		Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
			ada, made := s.Owner()
			s.stocks(made, "public")
			logins := map[string]Login{}
			for profile := range access {
				_, logins[profile] = ada.AddsLogin(made, profile, profile)
			}
			must(s.SQL.Run(made.Login(), "CREATE SCHEMA sales", "CREATE SCHEMA later"))(s)
			s.stocks(made, "sales")
			must(s.SQL.Run(made.Login(), "DROP TABLE public.item CASCADE", "DROP SEQUENCE public.ticket"))(s)
			s.stocks(made, "public")
			s.stocks(made, "later")
			for profile, login := range logins {
				for _, schema := range []string{"public", "sales", "later"} {
					s.may(login, profile, schema)
				}
			}
		}},
	{Name: "no profile may create anything, or be anybody else", Both: true, Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		for profile := range access {
			_, login := ada.AddsLogin(made, profile, profile)
			for _, statement := range neither(made) {
				_, err := s.SQL.Run(login, statement)
				s.That(err != nil && s.SQL.State(err) == "42501", "%s, %s: %v", profile, statement, err)
			}
		}
	}},
	{Name: "a custom role may do what the owner grants it", Both: true, Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.stocks(made, "public")
		role, login := ada.AddsLogin(made, "Shop", "custom")
		must(s.SQL.Run(made.Login(), "GRANT SELECT (id) ON item TO "+role.Username))(s)
		must(s.SQL.Run(login, "SELECT id FROM public.item"))(s)
		_, err := s.SQL.Run(login, "SELECT price FROM public.item")
		s.That(s.SQL.State(err) == "42501", "it reads another column: %v", err)
	}},
	{Name: "what the owner grants and takes concerns one role, and no profile", Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.stocks(made, "public")
		one, first := ada.AddsLogin(made, "one", "read_only")
		_, second := ada.AddsLogin(made, "two", "read_only")
		must(s.SQL.Run(made.Login(), "GRANT INSERT ON item TO "+one.Username))(s)
		must(s.SQL.Run(first, "INSERT INTO public.item VALUES (7, 7)"))(s)
		_, err := s.SQL.Run(second, "INSERT INTO public.item VALUES (8, 8)")
		s.That(s.SQL.State(err) == "42501", "the other may, too: %v", err)
		must(s.SQL.Run(made.Login(), "REVOKE ALL ON item FROM "+one.Username))(s)
		must(s.SQL.Run(first, "SELECT * FROM public.item"))(s)
	}},
	{Name: "roles of one database reach nothing in another, of the same account either", Both: true, Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made, other := ada.Creates("orders"), ada.Creates("other")
			_, login := ada.AddsLogin(made, "Reports", "read_write")
			for _, run := range []func(Login, ...string) ([]string, error){s.SQL.Run, s.SQL.Direct} {
				for _, elsewhere := range []string{other.Name, "postgres", "template1", "pgherd_maintenance", "pgbouncer"} {
					l := login
					l.Database = elsewhere
					_, err := run(l, "SELECT 1")
					s.That(err != nil, "it got in to %s", elsewhere)
				}
			}
		}},
}

// may fails the story unless a login may do in a schema exactly what its profile says.
func (s *Stage) may(l Login, profile, schema string) {
	s.Helper()
	for _, statement := range access[profile].may {
		_, err := s.SQL.Run(l, strings.ReplaceAll(statement, "%", schema))
		s.That(err == nil, "%s may not in %s: %s: %v", profile, schema, statement, err)
	}
	for _, statement := range access[profile].mayNot {
		_, err := s.SQL.Run(l, strings.ReplaceAll(statement, "%", schema))
		s.That(err != nil && s.SQL.State(err) == "42501", "%s in %s: %s: %v", profile, schema, statement, err)
	}
}
