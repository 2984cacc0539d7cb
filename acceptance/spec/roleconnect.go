package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var grantingConnect = []Scenario{
	{Name: "an owner who withdraws CONNECT during setup is told what to run, and the same request goes on", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask, told := s.withdrawsDuringSetup(ada, made)
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		role := ada.AddsRoleAs(made, ask)
		s.That(role.Status == "ready" && role.Username == told.Username, "it is %+v", role)
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "a setup that CONNECT holds up can be finished step by step", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask, told := s.withdrawsDuringSetup(ada, made)
		role := ada.halfMade(made)
		s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, role.RoleID)), "CONNECT_GRANT_REQUIRED")
		prepared := must(ada.Roles.Prepare(ctx, made.ID, role.RoleID))(s)
		s.That(prepared.Status == "sql_ready" && prepared.RoleID == role.RoleID && prepared.Username == told.Username &&
			prepared.Profile == "custom" && prepared.AccessProfile == "read_only" && prepared.Ordinal == role.Ordinal, "%+v", prepared)
		r := s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, role.RoleID)), "CONNECT_GRANT_REQUIRED")
		s.That(r.GrantSQL == told.GrantSQL, "it is told to run %s", r.GrantSQL)
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		for range 2 {
			admitted := must(ada.Roles.Admit(ctx, made.ID, role.RoleID))(s)
			s.That(admitted.Status == "ready" && admitted.RoleID == role.RoleID, "%+v", admitted)
		}
		s.Refused(refusal(ada.Roles.Prepare(ctx, made.ID, role.RoleID)), "MANAGED_ROLE_CONFLICT")
		s.That(ada.AddsRoleAs(made, ask).RoleID == role.RoleID, "the request makes another role")
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "a role that is not finished lets nobody in, blocks the next one, and can be deleted", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask, _ := s.withdrawsDuringSetup(ada, made)
		role := ada.halfMade(made)
		other := NewRole{DisplayName: "other", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "other"}
		s.Refused(refusal(ada.CreateRole(made.ID, other)), "MANAGED_ROLE_CONFLICT")
		for what, err := range s.tryReady(ada, made, role) {
			s.Log(what)
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
		}
		ada.Deletes(made, role)
		s.Refused(refusal(ada.CreateRole(made.ID, ask)), "MANAGED_ROLE_CONFLICT")
		ada.AddsRoleAs(made, other)
	}},
	{Name: "a rotation while CONNECT is withdrawn opens nothing until the owner grants it again", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.OnServer.Withdraw(made, role.Username))
		ada.Rotates(made, role, "rotate-1")
		fresh := ada.Reveals(made, role).Login()
		s.bothOut(fresh)
		s.OK(s.OnServer.Owner(made, "GRANT CONNECT ON DATABASE "+quoted(made.Name)+" TO "+quoted(role.Username)))
		for _, way := range []Login{fresh, fresh.ByTransaction()} {
			s.Eventually("it gets in", func() bool { // each entry of the pooler waits a second after a log-in that failed
				session, err := s.Connect(way)
				if err == nil {
					session.Close()
				}
				return err == nil
			})
		}
		s.bothOut(login)
	}},
	{Name: "a role whose CONNECT is withdrawn can be shown, revoked and deleted", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		for what, end := range map[string]func(wire.Role){
			"revoked": func(r wire.Role) { ada.Revokes(made, r) },
			"deleted": func(r wire.Role) { ada.Deletes(made, r) },
			"removed": func(r wire.Role) {
				ada.Revokes(made, r)
				gone := must(ada.Roles.Remove(ctx, made.ID, r.RoleID))(s)
				s.That(gone.Status == "removed", "it is %+v", gone)
			},
		} {
			role, login := ada.AddsLogin(made, what, "read_only")
			sessions := s.bothIn(login)
			s.OK(s.OnServer.Withdraw(made, role.Username))
			s.That(ada.Reveals(made, role).Login() == login, "another password is shown")
			end(role)
			s.closed(sessions...)
			s.bothOut(login)
		}
		list := ada.ListsRoles(made)
		s.That(len(list) == 1 && list[0].DisplayName == "revoked" && list[0].Status == "revoked", "the list is %+v", list)
	}},
}

// withdrawsDuringSetup has somebody ask for the first role of a database, and the owner withdraw its CONNECT meanwhile.
func (s *Stage) withdrawsDuringSetup(c *Customer, db Created) (NewRole, wire.GrantRequired) {
	s.Helper()
	username := usernameOf(db, 1)
	end := must(s.OnServer.WithdrawAtOnce(db, username))(s)
	ask := NewRole{DisplayName: "Held up", AccessProfile: "read_only", ConnectionLimit: 2, IdempotencyKey: "held up"}
	_, err := c.CreateRole(db.ID, ask)
	s.OK(end())
	r := s.Refused(err, "CONNECT_GRANT_REQUIRED")
	told := r.GrantRequired
	s.That(told != nil && told.DatabaseName == db.Name && told.Username == username && told.GrantSQL != "", "it tells %+v", told)
	return ask, *told
}

// halfMade is the only role of a database, whose setup was held up.
func (c *Customer) halfMade(db Created) wire.Role {
	c.stage.Helper()
	list := must(c.Roles.List(ctx, db.ID, false))(c.stage)
	c.stage.That(len(list) == 1 && (list[0].Status == "sql_ready" || list[0].Status == "reserved"), "the list is %+v", list)
	return list[0].Role
}

// tryReady does what needs a role that is ready.
func (s *Stage) tryReady(c *Customer, db Created, r wire.Role) map[string]error {
	errs := map[string]error{}
	for _, what := range []RoleKind{"reveal", "rotate", "revoke"} {
		errs[string(what)] = s.tryOne(c, db, r, what)
	}
	return errs
}
