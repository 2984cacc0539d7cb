package spec

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/role"
)

var deletingRoles = []Scenario{
	{Name: "a deleted role is shut out, gone from the server and the list, and nobody else is disturbed", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		_, neighbour := ada.AddsLogin(made, "Jobs", "read_only")
		sessions, others := s.bothIn(login), s.bothIn(neighbour)
		s.That(slices.Contains(s.serverObjects(), "login "+role.Username), "the server does not have it")
		ada.Deletes(made, role)
		s.closed(sessions...)
		s.bothOut(login)
		s.open(others...)
		s.That(!slices.ContainsFunc(s.serverObjects(), func(o string) bool { return strings.HasSuffix(o, role.Username) }),
			"the server still has %s", role.Username)
		s.That(len(ada.ListsRoles(made)) == 1, "the list is %+v", ada.ListsRoles(made))
		ada.Deletes(made, role)
	}},
	{Name: "a revoked role is removed by either way", Play: func(s *Stage) {
		ada, made := s.Owner()
		one, two := ada.AddsRole(made, "one", "custom"), ada.AddsRole(made, "two", "custom")
		s.Refused(refusal(ada.Roles.Remove(ctx, made.ID, one.RoleID)), "MANAGED_ROLE_CONFLICT")
		ada.Revokes(made, one)
		gone := must(ada.Roles.Remove(ctx, made.ID, one.RoleID))(s)
		s.That(gone == wire.RoleRemoval{RoleID: one.RoleID, Status: "removed"}, "it is %+v", gone)
		ada.Revokes(made, two)
		ada.Deletes(made, two)
		s.That(len(ada.ListsRoles(made)) == 0, "the list is %+v", ada.ListsRoles(made))
	}},
	{Name: "a grant of the owner keeps a role, revoked, until it is taken back", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.OnServer.Entangle(made, role.Username, 2))
		sessions := s.bothIn(login)
		for range 2 {
			_, err := ada.DeleteRole(made.ID, role.RoleID)
			told := s.dependencies(err)
			s.That(len(told.Dependencies) == 2 && !told.Truncated, "it tells %+v", told)
			for _, d := range told.Dependencies {
				s.That(d.Kind == "grant" && d.ObjectType == "table" && d.Schema == "public" && d.Name != "" && d.Identity != "" &&
					d.Grantor == made.Name, "%+v", d)
			}
			s.That(ada.FindsRole(made, role).Status == "revoked", "it is %s", ada.FindsRole(made, role).Status)
		}
		s.closed(sessions...)
		s.bothOut(login)
		r := s.Refused(refusal(ada.Roles.Remove(ctx, made.ID, role.RoleID)), "ROLE_DEPENDENCIES")
		s.That(r.Dependencies == nil, "the short way tells %+v", r.Dependencies)
		s.OK(s.OnServer.Disentangle(made, role.Username))
		gone := must(ada.Roles.Remove(ctx, made.ID, role.RoleID))(s)
		s.That(gone.Status == "removed", "it is %+v", gone)
	}},
	{Name: "of many dependencies twenty are told, and that there are more", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "custom")
		s.OK(s.OnServer.Entangle(made, role.Username, 21))
		_, err := ada.DeleteRole(made.ID, role.RoleID)
		told := s.dependencies(err)
		s.That(len(told.Dependencies) == 20 && told.Truncated, "it tells %d", len(told.Dependencies))
		s.OK(s.OnServer.Disentangle(made, role.Username))
		ada.Deletes(made, role)
	}},
	{Name: "what depends on a role in another database of the account is told without its name; in a stranger's it does not count",
		Play: func(s *Stage) {
			ada, eve := s.Customer("pro"), s.Customer("pro")
			made, other, foreign := ada.Creates("orders"), ada.Creates("other"), eve.Creates("foreign")
			role := ada.AddsRole(made, "Reports", "custom")
			s.OK(s.OnServer.Entangle(foreign, role.Username, 1))
			s.OK(s.OnServer.Entangle(other, role.Username, 1))
			_, err := ada.DeleteRole(made.ID, role.RoleID)
			told := s.dependencies(err)
			s.That(len(told.Dependencies) == 1 && told.Dependencies[0].Kind == "other_database", "it tells %+v", told)
			s.OK(s.OnServer.Disentangle(other, role.Username))
			ada.Deletes(made, role)
			s.That(!slices.ContainsFunc(s.serverObjects(), func(o string) bool { return strings.HasSuffix(o, role.Username) }),
				"the server still has %s", role.Username)
			ada.AddsRole(made, "Next", "custom")
		}},
	{Name: "whatever a role owns or is named in keeps it, and only the owner drops any of that", Needs: []Ability{RunsRealSQL},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, login := ada.AddsLogin(made, "Jobs", "custom")
			name := role.Username
			_, err := s.SQL.Run(made.Login(),
				"CREATE SCHEMA jobs", "GRANT USAGE, CREATE ON SCHEMA jobs TO "+name,
				"CREATE TABLE item (id int)", "CREATE POLICY own ON item TO "+name+" USING (true)",
				"ALTER DEFAULT PRIVILEGES IN SCHEMA jobs GRANT SELECT ON TABLES TO "+name,
				"CREATE FUNCTION double(n int) RETURNS int LANGUAGE sql RETURN n * 2", "GRANT EXECUTE ON FUNCTION double TO "+name)
			s.OK(err)
			must(s.SQL.Run(login, "CREATE TABLE jobs.own (id int)", "INSERT INTO jobs.own VALUES (42)"))(s)
			_, err = ada.DeleteRole(made.ID, role.RoleID)
			told := s.dependencies(err).Dependencies
			s.tells(told, "owned_object", "table", "jobs", "own")
			s.tells(told, "grant", "schema", "", "jobs")
			s.tells(told, "grant", "function", "public", "double")
			s.That(slices.ContainsFunc(told, func(d Dependency) bool { return d.Kind == "policy" }), "no policy in %+v", told)
			s.That(slices.ContainsFunc(told, func(d Dependency) bool { return strings.Contains(d.ObjectType, "default") }),
				"no default privileges in %+v", told)
			rows, err := s.SQL.Run(made.Login(), `SELECT relname FROM pg_class WHERE relname IN ('own', 'item')
				UNION ALL SELECT polname FROM pg_policy UNION ALL SELECT proname FROM pg_proc WHERE proname = 'double'`)
			s.OK(err)
			s.That(len(rows) == 4, "what is left is %v", rows)
			_, err = s.SQL.Run(made.Login(),
				"DROP TABLE jobs.own", "DROP POLICY own ON item", "REVOKE ALL ON SCHEMA jobs FROM "+name,
				"ALTER DEFAULT PRIVILEGES IN SCHEMA jobs REVOKE SELECT ON TABLES FROM "+name,
				"REVOKE ALL ON FUNCTION double FROM "+name)
			s.OK(err)
			ada.Deletes(made, role)
		}},
}

// dependencies are what a refused removal tells.
func (s *Stage) dependencies(err error) wire.Dependencies {
	s.Helper()
	told := s.Refused(err, "ROLE_DEPENDENCIES").Dependencies
	s.That(told != nil, "it tells nothing")
	return *told
}

// tells fails the story unless a dependency is on the list.
func (s *Stage) tells(told []Dependency, kind role.DependencyKind, objectType, schema, name string) {
	s.Helper()
	s.That(slices.ContainsFunc(told, func(d Dependency) bool {
		return d.Kind == kind && d.ObjectType == objectType && d.Schema == schema && strings.Contains(d.Name, name) && d.Identity != ""
	}), "no %s of %s %s.%s in %+v", kind, objectType, schema, name, told)
}
