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
	{Name: "every profile gets in at once", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		for i, profile := range []string{"read_only", "read_write", "custom"} {
			role, login := ada.AddsLogin(made, profile, profile)
			s.That(string(role.AccessProfile) == profile && role.Ordinal == i+1, "it is %+v", role)
			s.bothIn(login)
		}
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
	{Name: "the set of roles has a generation that grows with every change of it", Play: func(s *Stage) {
		ada, made := s.Owner()
		one := ada.AddsRole(made, "one", "custom")
		before := ada.FindsRole(made, one).Generation
		for what, change := range map[string]func(){
			"a new role": func() { ada.AddsRole(made, "two", "custom") },
			"a rotation": func() { ada.Rotates(made, one, "rotate-1") },
		} {
			change()
			after := ada.FindsRole(made, one).Generation
			s.That(after > before, "after %s the generation is %d; it was %d", what, after, before)
			before = after
		}
		ada.Reveals(made, one)
		s.That(ada.FindsRole(made, one).Generation == before, "a look at a password changed the set")
	}},
	{Name: "a database with a single login, or one that is not active, takes no role", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "k"}
		single := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
		s.Refused(refusal(ada.CreateRole(single.ID, ask)), "MANAGED_ROLE_CONFLICT")
		made := ada.Creates("orders")
		ada.Sets(made.ID, "stop", "stopped")
		s.Refused(refusal(ada.CreateRole(made.ID, ask)), "MANAGED_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		ada.AddsRoleAs(made, ask)
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
