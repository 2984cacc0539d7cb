package spec

import "strings"

var namingRoles = []Scenario{
	{Name: "a display name has 1-64 characters that can be seen, and none that control", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role := ada.AddsRole(made, "Reports", "custom")
		for _, bad := range []string{"", "   ", strings.Repeat("ä", 65), "a\x00b", "a\tb", "a\nb", "a\u2028b", "a\u202eb", "\u200d"} {
			_, err := ada.CreateRole(made.ID, NewRole{
				DisplayName: bad, AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "bad",
			})
			s.Refused(err, "VALIDATION_ERROR", "displayName")
			_, err = ada.RenameRole(made.ID, role.RoleID, bad)
			s.Refused(err, "VALIDATION_ERROR", "displayName")
		}
		long := strings.Repeat("ä", 64)
		s.That(ada.AddsRole(made, " "+long+" ", "custom").DisplayName == long, "it is shown otherwise")
	}},
	{Name: "no two roles of a database have one display name", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		reports, jobs := ada.AddsRole(made, "Reports", "custom"), ada.AddsRole(made, "Jobs", "custom")
		ada.Revokes(made, reports)
		for _, taken := range []string{"Reports", " Reports ", "Rep\u200dorts"} {
			_, err := ada.CreateRole(made.ID, NewRole{
				DisplayName: taken, AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "taken",
			})
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
			_, err = ada.RenameRole(made.ID, jobs.RoleID, taken)
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
		}
		ada.Deletes(made, reports)
		ada.AddsRoleAs(made, NewRole{DisplayName: "Reports", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "free"})
	}},
	{Name: "a rename changes the label and nothing else, of a revoked role, too", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role, login := ada.AddsLogin(made, "Reports", "custom")
		open := s.bothIn(login)
		renamed, err := ada.RenameRole(made.ID, role.RoleID, "  Monthly reports ")
		s.OK(err)
		s.That(renamed == Renamed{RoleID: role.RoleID, DisplayName: "Monthly reports"}, "the answer is %+v", renamed)
		want := role
		want.DisplayName, want.Generation = "Monthly reports", ada.FindsRole(made, role).Generation
		s.That(ada.FindsRole(made, role) == want, "it is now\n%+v\nand was\n%+v", ada.FindsRole(made, role), role)
		s.open(open...)
		s.That(ada.Reveals(made, role).Login() == login, "the rename changed the log-in")
		_, err = ada.RenameRole(made.ID, role.RoleID, "Monthly reports")
		s.OK(err)

		ada.Revokes(made, role)
		_, err = ada.RenameRole(made.ID, role.RoleID, "Old reports")
		s.OK(err)
		s.That(ada.FindsRole(made, role).DisplayName == "Old reports", "it is %+v", ada.FindsRole(made, role))
		ada.Deletes(made, role)
		_, err = ada.RenameRole(made.ID, role.RoleID, "Ghost")
		s.Refused(err, "ROLE_NOT_FOUND")
	}},
	{Name: "a login name is never used twice, though its slot and its label are", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		ada.Deletes(made, ada.AddsRole(made, "one", "custom"))
		again := ada.AddsRoleAs(made, NewRole{DisplayName: "one", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "k"})
		s.That(again.Ordinal == 2 && again.Username == usernameOf(made, 2), "it is %+v", again)
	}},
}
