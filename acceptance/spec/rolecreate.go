package spec

import (
	"slices"
	"strings"
)

var addingRoles = []Scenario{
	{Name: "a new role is ready at once, and only its own password of this very database gets in", Play: func(s *Stage) {
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
	{Name: "every profile gets in at once", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for i, profile := range []string{"read_only", "read_write", "custom"} {
			role, login := ada.AddsLogin(made, profile, profile)
			s.That(role.AccessProfile == profile && role.Ordinal == i+1, "it is %+v", role)
			s.bothIn(login)
		}
	}},
	{Name: "roles are listed by ordinal, revoked ones on request, removed ones never", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		var roles []Role
		for _, name := range []string{"d", "c", "b", "a"} {
			roles = append(roles, ada.AddsRole(made, name, "custom"))
		}
		ada.Revokes(made, roles[1])
		ada.Deletes(made, roles[2])
		for revoked, want := range map[bool][]int{false: {1, 4}, true: {1, 2, 4}} {
			list, err := ada.Roles(made.ID, revoked)
			s.OK(err)
			var ordinals []int
			for _, r := range list {
				ordinals = append(ordinals, r.Ordinal)
				s.That(r.OperationID == nil && r.RoleID == roles[r.Ordinal-1].RoleID, "it is listed as %+v", r)
			}
			s.That(slices.Equal(ordinals, want), "includeRevoked=%t: the list is %v; want %v", revoked, ordinals, want)
		}
		s.That(len(ada.ListsRoles(other)) == 0, "roles of one database are another's")
	}},
	{Name: "the set of roles has a generation that grows with every change of it", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
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
	{Name: "a choice that does not exist is refused, and nothing is made", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for _, bad := range []struct {
			field string
			ask   NewRole
		}{
			{"accessProfile", NewRole{DisplayName: "R", AccessProfile: "", ConnectionLimit: 1}},
			{"accessProfile", NewRole{DisplayName: "R", AccessProfile: "owner", ConnectionLimit: 1}},
			{"accessProfile", NewRole{DisplayName: "R", AccessProfile: "READ_ONLY", ConnectionLimit: 1}},
			{"connectionLimit", NewRole{DisplayName: "R", AccessProfile: "custom"}},
			{"connectionLimit", NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: -1}},
		} {
			bad.ask.IdempotencyKey = "bad"
			_, err := ada.CreateRole(made.ID, bad.ask)
			s.Refused(err, "VALIDATION_ERROR", bad.field)
		}
		s.That(len(ada.ListsRoles(made)) == 0, "something was made all the same")
		s.That(ada.AddsRoleAs(made, NewRole{
			DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "bad",
		}).Ordinal == 1, "a refused request used an ordinal up")
	}},
	{Name: "a database with a single login, or one that is not active, takes no role", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "k"}
		single := ada.CreatesAs(NewDatabase{Name: s.Name("single"), DisplayName: "S", RoleModel: "single_login"})
		_, err := ada.CreateRole(single.ID, ask)
		s.Refused(err, "MANAGED_ROLE_CONFLICT")
		made := ada.Creates("orders")
		ada.Sets(made.ID, "stop", "stopped")
		_, err = ada.CreateRole(made.ID, ask)
		s.Refused(err, "MANAGED_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		ada.AddsRoleAs(made, ask)
	}},
	{Name: "a backup that is running keeps nobody from making, rotating and removing roles", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		s.OK(s.Connects(made.Login()).Write("kept"))
		release, err := s.HoldBackup(made)
		s.OK(err)
		work := ada.BacksUp(made.ID)
		role := ada.AddsRole(made, "Reports", "custom")
		ada.Rotates(made, role, "rotate-1")
		ada.Deletes(made, role)
		release()
		s.That(ada.Follows(work).Status == "succeeded", "the backup failed")
	}},
}
