package spec

import (
	"reflect"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var namingRoles = []Scenario{
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
}
