package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/role"
)

// Stories in which the agent is out of reach, or the server is not as the service has left it.
var reconcilingRoles = overSingleLogins([]Scenario{
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
})
