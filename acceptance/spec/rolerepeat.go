package spec

import (
	"fmt"
	"slices"
)

var repeatingRoles = []Scenario{
	{Name: "a repeated request with the same key gets the same role", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		ask := NewRole{DisplayName: "  Reports ", AccessProfile: "read_only", ConnectionLimit: 3, IdempotencyKey: "deploy-1"}
		first := ada.AddsRoleAs(made, ask)
		ask.DisplayName = "Reports"
		again := ada.AddsRoleAs(made, ask)
		s.That(again == first, "the second answer is\n%+v\nthe first was\n%+v", again, first)
		s.That(len(ada.ListsRoles(made)) == 1, "the list is %+v", ada.ListsRoles(made))
	}},
	{Name: "the same key with another request is a conflict", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask := NewRole{DisplayName: "Reports", AccessProfile: "read_only", ConnectionLimit: 3, IdempotencyKey: "deploy-1"}
		ada.AddsRoleAs(made, ask)
		for _, change := range []func(*NewRole){
			func(n *NewRole) { n.DisplayName = "reports" },
			func(n *NewRole) { n.AccessProfile = "read_write" },
			func(n *NewRole) { n.ConnectionLimit = 4 },
		} {
			other := ask
			change(&other)
			s.Refused(refusal(ada.CreateRole(made.ID, other)), "MANAGED_ROLE_CONFLICT")
		}
		s.That(len(ada.ListsRoles(made)) == 1, "the list is %+v", ada.ListsRoles(made))
	}},
	{Name: "the key of a removed role makes no other", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask := NewRole{DisplayName: "Reports", AccessProfile: "custom", ConnectionLimit: 1, IdempotencyKey: "deploy-1"}
		ada.Deletes(made, ada.AddsRoleAs(made, ask))
		s.Refused(refusal(ada.CreateRole(made.ID, ask)), "MANAGED_ROLE_CONFLICT")
		s.That(len(ada.ListsRoles(made)) == 0, "the list is %+v", ada.ListsRoles(made))
		ask.IdempotencyKey = "deploy-2"
		ada.AddsRoleAs(made, ask)
	}},
	{Name: "of many who want a role at once each gets one or hears of the conflict, and can ask again", Play: func(s *Stage) {
		ada, made := s.Owner()
		ask := func(i int) NewRole {
			key := fmt.Sprint("role-", i)
			return NewRole{DisplayName: key, AccessProfile: "custom", ConnectionLimit: 2, IdempotencyKey: key}
		}
		errs := s.atOnce(8, func(i int) error {
			_, err := ada.on(i).CreateRole(made.ID, ask(i))
			return err
		})
		for i, err := range errs {
			if err != nil {
				s.Refused(err, "MANAGED_ROLE_CONFLICT")
			}
			s.bothIn(ada.Reveals(made, ada.AddsRoleAs(made, ask(i))).Login())
		}
		names := usernames(ada.ListsRoles(made))
		s.That(len(slices.Compact(slices.Sorted(slices.Values(names)))) == 8, "the logins are %v", names)
	}},
}
