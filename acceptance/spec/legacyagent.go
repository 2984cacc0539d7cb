package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/role"
)

// Stories in which the agent is out of reach, or the server is not as the service has left it.
var reconcilingRoles = overSingleLogins([]Scenario{
	{Name: "an opt-in without the agent is reserved, keeps roles away, and goes on when it is repeated", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.CreatesSingle("orders")
			s.losesAgent()
			s.Refused(refusal(ada.LegacyRoles.OptIn(ctx, made.ID)), "AGENT_ERROR")
			s.Refused(refusal(ada.CreateRole(made.ID, asksRole("Reports", 3))), "LEGACY_ROLE_CONFLICT")
			s.OK(s.Agent.Start())
			s.bothIn(ada.Reveals(made, ada.AddsRole(ada.OptsIn(made), "Reports", "read_only")).Login())
		}},
	{Name: "reconcile says what is, after steps that the agent has not heard of, and takes none", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		role := must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s) // needs no agent
		s.Refused(refusal(ada.LegacyRoles.Prepare(ctx, made.ID, role.RoleID)), "AGENT_ERROR")
		s.Refused(refusal(ada.LegacyRoles.Reconcile(ctx, made.ID, role.RoleID)), "AGENT_ERROR")
		s.OK(s.Agent.Start())
		s.That(ada.Reconciles(made, role).Status == "reserved", "it is %+v", ada.FindsRole(made, role))
		s.gone(role)
		told := ada.Prepares(made, role)
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		s.losesAgent()
		s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, role.RoleID)), "AGENT_ERROR")
		s.OK(s.Agent.Start())
		found := ada.Reconciles(made, role)
		s.That(found.Status == "sql_ready" && found.OperationID == nil, "it is %+v", found)
		s.refusesAll(s.tryReady(ada, made, role), "LEGACY_ROLE_CONFLICT")
		must(ada.Roles.Admit(ctx, made.ID, role.RoleID))(s)
		login := ada.Reveals(made, role).Login()

		s.stopsBatch()
		s.losesAgent()
		begun := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
		s.That(begun.Status == "pending", "the change is %+v", begun)
		s.Refused(refusal(ada.LegacyRoles.Reconcile(ctx, made.ID, role.RoleID)), "AGENT_ERROR")
		s.OK(s.Agent.Start())
		found = ada.Reconciles(made, role)
		s.That(found.Status == "updating" && found.OperationID != nil && *found.OperationID == begun.OperationID, "it is %+v", found)
		done := must(ada.ReplayChange(made.ID, role.RoleID, begun.OperationID))(s)
		s.That(done.Status == "completed" && done.CredentialGeneration == 2, "%+v", done)
		found = ada.Reconciles(made, role)
		s.That(found.Status == "ready" && found.OperationID == nil && found.CredentialGeneration == 2, "it is %+v", found)
		s.bothOut(login)
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "reconcile looks at the server: what has become of a role there is told, whatever its status is", Play: func(s *Stage) {
		ada, made := s.Owner()
		drifted, login := ada.AddsLogin(made, "Reports", "read_only")
		dropped := ada.AddsRole(made, "Jobs", "read_only")
		s.OK(s.OnServer.SetPassword(login, "chosen by the role"))
		s.OK(s.OnServer.DropLogin(made, dropped.Username))
		prepared := must(ada.CreateRole(made.ID, asksRole("Third", 3)))(s)
		ada.Prepares(made, prepared)
		s.That(ada.Reconciles(made, prepared).Status == "sql_ready", "it is %+v", ada.FindsRole(made, prepared))
		s.OK(s.OnServer.DropLogin(made, prepared.Username))
		for r, status := range map[wire.Role]role.Status{drifted: "ready", dropped: "ready", prepared: "sql_ready"} {
			s.Refused(refusal(ada.LegacyRoles.Reconcile(ctx, made.ID, r.RoleID)), "LEGACY_ROLE_CONFLICT")
			s.That(ada.FindsRole(made, r).Status == status, "it is %+v", ada.FindsRole(made, r))
		}
		ada.Rotates(made, drifted, "rotate-1")
		s.That(ada.Reconciles(made, drifted).Status == "ready", "it is %+v", ada.FindsRole(made, drifted))
		s.bothIn(ada.Reveals(made, drifted).Login())
		for _, r := range []wire.Role{prepared, dropped, drifted} {
			ada.Deletes(made, r)
			s.gone(r)
		}
	}},
	{Name: "a removal without the agent is pending: of a ready role it goes on when it is repeated, of a revoked one by itself",
		Alone: true, Play: func(s *Stage) {
			ada, made := s.Owner()
			ready, login := ada.AddsLogin(made, "Reports", "read_only")
			revoked := ada.AddsRole(made, "Jobs", "read_only")
			ada.Revokes(made, revoked)
			s.losesAgent()
			begun := must(ada.Roles.Remove(ctx, made.ID, ready.RoleID))(s)
			s.That(begun.Status == "pending" && begun.RoleID == ready.RoleID, "it is %+v", begun)
			s.OK(s.Agent.Start())
			ada.Deletes(made, ready)
			s.bothOut(login)
			s.losesAgent()
			begun = must(ada.Roles.Remove(ctx, made.ID, revoked.RoleID))(s)
			s.That(begun.Status == "pending" && begun.RoleID == revoked.RoleID, "it is %+v", begun)
			s.OK(s.Agent.Start())
			s.Eventually("the role is gone", func() bool { return len(ada.ListsRoles(made)) == 0 })
			for _, r := range []wire.Role{ready, revoked} {
				s.gone(r)
			}
		}},
})
