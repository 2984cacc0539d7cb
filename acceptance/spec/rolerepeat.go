package spec

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
}
