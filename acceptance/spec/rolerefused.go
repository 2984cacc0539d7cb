package spec

var refusingRoles = []Scenario{
	{Name: "a change that the server refuses for good blocks the rest until an operator ends it", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, old := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.OnServer.Obstruct(role.Username, true))
		change := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
		s.That(change.Status == "pending", "the change is %+v", change)
		s.Refused(refusal(ada.SetLifecycle(made.ID, "restart")), "DATABASE_STATE_CONFLICT")

		found := must(s.Operator.EndChange(made.ID, change.OperationID, "the server is being mended"))(s)
		s.That(found == "old_shut", "found was %s", found)
		s.Refused(refusal(ada.Roles.GetChange(ctx, made.ID, role.RoleID, change.OperationID)), "MANAGED_ROLE_CONFLICT")
		shown := ada.FindsRole(made, role)
		s.That(shown.Status == "ready" && shown.OperationID == nil && shown.CredentialGeneration == 1, "it is %+v", shown)
		s.Refused(refusal(ada.Roles.Reveal(ctx, made.ID, role.RoleID)), "MANAGED_ROLE_CONFLICT") // its password lets nobody in

		s.OK(s.OnServer.Obstruct(role.Username, false))
		ada.Rotates(made, role, "rotate-2")
		s.bothOut(old)
		s.bothIn(ada.Reveals(made, role).Login())
		ada.Sets(made.ID, "restart", "active")
	}},
	{Name: "a removal that the server refuses for good ends by itself, and blocks nothing", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, other := ada.AddsRole(made, "Reports", "read_only"), ada.AddsRole(made, "Jobs", "read_only")
		ada.Revokes(made, role)
		s.OK(s.OnServer.Obstruct(role.Username, true))
		s.Refused(refusal(ada.DeleteRole(made.ID, role.RoleID)), "MANAGED_ROLE_CONFLICT")
		s.That(ada.FindsRole(made, role).Status == "revoked", "it is %+v", ada.FindsRole(made, role))
		ada.Rotates(made, other, "rotate-1")

		s.OK(s.OnServer.Obstruct(role.Username, false))
		ada.Deletes(made, role)
	}},
}
