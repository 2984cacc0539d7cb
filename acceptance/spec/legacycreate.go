package spec

import (
	"slices"

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
	{Name: "a grant that is taken back before the admission opens nothing", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := must(ada.CreateRole(made.ID, asksRole("Reports", 3)))(s)
		told := ada.Prepares(made, role)
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		s.OK(s.OnServer.Withdraw(made, told.Username))
		s.Refused(refusal(ada.Roles.Admit(ctx, made.ID, role.RoleID)), "CONNECT_GRANT_REQUIRED")
		s.OK(s.OnServer.Owner(made, told.GrantSQL))
		must(ada.Roles.Admit(ctx, made.ID, role.RoleID))(s)
		s.bothIn(ada.Reveals(made, role).Login())
	}},
	{Name: "a database has at most three roles of 1 to 20 connections each, revoked ones counted; a removal frees the slot",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			for _, limit := range []int{-1, 0, 21} {
				s.Refused(refusal(ada.CreateRole(made.ID, asksRole("Wrong", limit))), "VALIDATION_ERROR", "connectionLimit")
			}
			var roles []wire.Role
			for n := range 3 {
				roles = append(roles, ada.AddsRoleAs(made, asksRole(nth("role", n), 20)))
			}
			ada.Revokes(made, roles[0])
			s.Refused(refusal(ada.CreateRole(made.ID, asksRole("fourth", 1))), "LEGACY_ROLE_CONFLICT")
			shown := must(ada.Roles.List(ctx, made.ID, false))(s)
			s.That(slices.Equal(usernames(shown), []string{usernameOf(made, 2), usernameOf(made, 3)}), "the list is %+v", shown)
			s.That(len(ada.ListsRoles(made)) == 3, "with revoked ones it is %+v", ada.ListsRoles(made))
			ada.Deletes(made, roles[0])
			fourth := ada.AddsRoleAs(made, asksRole("fourth", 1))
			s.That(fourth.Ordinal == 4 && fourth.Username == usernameOf(made, 4), "it is %+v", fourth)
			s.Connects(ada.Reveals(made, fourth).Login())
		}},
})
