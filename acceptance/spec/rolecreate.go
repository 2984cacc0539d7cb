package spec

import (
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var addingRoles = []Scenario{
	{Name: "a new role is ready at once, and only its own password of this very database gets in", Both: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		s.That(role.Status == "ready" && role.Profile == "custom" && role.DisplayName == "Reports" && role.Ordinal == 1 &&
			role.AccessProfile == "read_only" && role.ConnectionLimit == 3 && role.CredentialGeneration == 1 &&
			role.Username == usernameOf(made, 1), "it is %+v", role)
		s.bothIn(login)

		wrong := login
		wrong.Password = strings.Repeat("x", len(login.Password))
		s.bothOut(wrong)
		crossed := login
		crossed.Database = other.Name
		s.bothOut(crossed)
		stolen := made.Login()
		stolen.Username = role.Username
		s.bothOut(stolen)
	}},
	{Name: "roles are listed by ordinal, revoked ones on request, removed ones never", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		var roles []wire.Role
		for _, name := range []string{"d", "c", "b", "a"} {
			roles = append(roles, ada.AddsRole(made, name, "custom"))
		}
		ada.Revokes(made, roles[1])
		ada.Deletes(made, roles[2])
		shown, all := must(ada.Roles.List(ctx, made.ID, false))(s), ada.ListsRoles(made)
		for _, list := range [][]wire.ListedRole{shown, all} {
			for _, r := range list {
				s.That(r.OperationID == nil && r.RoleID == roles[r.Ordinal-1].RoleID, "it is listed as %+v", r)
			}
		}
		s.That(slices.Equal(usernames(shown), []string{usernameOf(made, 1), usernameOf(made, 4)}), "the list is %+v", shown)
		s.That(slices.Equal(usernames(all), []string{usernameOf(made, 1), usernameOf(made, 2), usernameOf(made, 4)}), "it is %+v", all)
		s.That(len(ada.ListsRoles(other)) == 0, "roles of one database are another's")
	}},
	{Name: "a backup that is running keeps nobody from making, rotating and removing roles", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("kept"))
		release := must(s.HoldBackup(made))(s)
		work := ada.BacksUp(made.ID)
		role := ada.AddsRole(made, "Reports", "custom")
		ada.Rotates(made, role, "rotate-1")
		ada.Deletes(made, role)
		release()
		s.That(ada.Follows(work).Status == "succeeded", "the backup failed")
	}},
}
