package spec

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var addingLegacyRoles = overSingleLogins([]Scenario{
	{Name: "a role is reserved, prepared, granted CONNECT by the owner, and admitted; nothing is open before", Play: func(s *Stage) {
		ada, made := s.Owner()
		reserved := must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s)
		s.That(reserved.Status == "reserved" && reserved.Profile == "custom" && reserved.DisplayName == "Reports" &&
			reserved.AccessProfile == "read_only" && reserved.ConnectionLimit == 3 && reserved.Ordinal == 1 &&
			reserved.CredentialGeneration == 1 && reserved.Username == usernameOf(made, 1), "it is %+v", reserved)
		s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, reserved.RoleID)), "LEGACY_ROLE_CONFLICT")
		s.refusesAll(s.tryReady(ada, made, reserved), "LEGACY_ROLE_CONFLICT")
		s.Refused(refusal(ada.CreateRole(made.ID, asksRole("Jobs", 3))), "LEGACY_ROLE_CONFLICT")
		s.That(must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s) == reserved, "the request makes another role")

		told := ada.Prepares(made, reserved)
		s.That(ada.Prepares(made, reserved) == told, "it tells something else")
		s.refusesAll(s.tryReady(ada, made, reserved), "LEGACY_ROLE_CONFLICT")
		for range 2 {
			r := s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, reserved.RoleID)), "CONNECT_GRANT_REQUIRED")
			want := wire.GrantRequired{DatabaseName: made.Name, Username: told.Username, GrantSQL: told.GrantSQL}
			s.That(r.GrantRequired != nil && *r.GrantRequired == want, "it tells %+v; want %+v", r.GrantRequired, want)
		}
		s.That(ada.FindsRole(made, reserved).Status == "sql_ready", "it is %+v", ada.FindsRole(made, reserved))
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		for range 2 {
			admitted := must(ada.Roles.Admit(ctx, made.ID, reserved.RoleID))(s)
			s.That(admitted.Status == "ready" && admitted.RoleID == reserved.RoleID, "%+v", admitted)
		}
		s.Refused(refusal(ada.LegacyRoles.Prepare(ctx, made.ID, reserved.RoleID)), "LEGACY_ROLE_CONFLICT")
		s.bothIn(ada.Reveals(made, reserved).Login())
		s.That(must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s).Status == "ready", "the request does not tell of the role")
	}},
})
