package spec

import (
	"reflect"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var namingRoles = []Scenario{
	{Name: "no two roles of a database have one display name", Play: func(s *Stage) {
		ada, made := s.Owner()
		reports, jobs := ada.AddsRole(made, "Reports", "custom"), ada.AddsRole(made, "Jobs", "custom")
		ada.Revokes(made, reports)
		for _, taken := range []string{"Reports", " Reports ", "Rep\u200dorts"} {
			_, err := ada.CreateRole(made.ID, NewRole{
				DisplayName: taken, AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "taken",
			})
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
			s.Refused(refusal(ada.RenameRole(made.ID, jobs.RoleID, taken)), "MANAGED_ROLE_CONFLICT")
		}
		ada.Deletes(made, reports)
		ada.AddsRoleAs(made, NewRole{DisplayName: "Reports", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "free"})
	}},
	{Name: "a rename changes the label and nothing else, of a revoked role, too", Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "custom")
		open := s.bothIn(login)
		renamed := must(ada.RenameRole(made.ID, role.RoleID, "  Monthly reports "))(s)
		s.That(renamed == wire.RoleLabel{RoleID: role.RoleID, DisplayName: "Monthly reports"}, "the answer is %+v", renamed)
		want := role
		want.DisplayName, want.Generation = "Monthly reports", ada.FindsRole(made, role).Generation
		s.That(reflect.DeepEqual(ada.FindsRole(made, role).Role, want), "it is now\n%+v\nand was\n%+v", ada.FindsRole(made, role), role)
		s.open(open...)
		s.That(ada.Reveals(made, role).Login() == login, "the rename changed the log-in")
		must(ada.RenameRole(made.ID, role.RoleID, "Monthly reports"))(s)

		ada.Revokes(made, role)
		must(ada.RenameRole(made.ID, role.RoleID, "Old reports"))(s)
		s.That(ada.FindsRole(made, role).DisplayName == "Old reports", "it is %+v", ada.FindsRole(made, role))
		ada.Deletes(made, role)
		s.Refused(refusal(ada.RenameRole(made.ID, role.RoleID, "Ghost")), "ROLE_NOT_FOUND")
	}},
	{Name: "a login name is never used twice, though its slot and its label are", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Deletes(made, ada.AddsRole(made, "one", "custom"))
		again := ada.AddsRoleAs(made, NewRole{DisplayName: "one", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "k"})
		s.That(again.Ordinal == 2 && again.Username == usernameOf(made, 2), "it is %+v", again)
	}},
}
