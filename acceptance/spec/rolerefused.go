package spec

var refusingRoles = []Scenario{
	{Name: "a change that the server refuses for good blocks the database until an operator ends it", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role, old := ada.AddsLogin(made, "Reports", "read_only")
		s.OK(s.ByHand.Obstruct(role.Username, true))
		change, err := ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1")
		s.OK(err)
		s.That(change.Status == "pending", "the change is %+v", change)
		_, err = ada.SetLifecycle(made.ID, "restart")
		s.Refused(err, "DATABASE_STATE_CONFLICT")

		found, err := s.Operator.EndChange(made.ID, change.OperationID, "the server is being mended")
		s.OK(err)
		s.That(found == "old_shut", "found was %s", found)
		_, err = ada.RoleChange(made.ID, role.RoleID, change.OperationID)
		s.Refused(err, "MANAGED_ROLE_CONFLICT")
		shown := ada.FindsRole(made, role)
		s.That(shown.Status == "ready" && shown.OperationID == nil && shown.CredentialGeneration == 1, "it is %+v", shown)
		_, err = ada.RevealRole(made.ID, role.RoleID)
		s.Refused(err, "MANAGED_ROLE_CONFLICT") // its password lets nobody in

		s.OK(s.ByHand.Obstruct(role.Username, false))
		ada.Rotates(made, role, "rotate-2")
		s.bothOut(old)
		s.bothIn(ada.Reveals(made, role).Login())
		ada.Sets(made.ID, "restart", "active")
	}},
	{Name: "a removal that the server refuses for good ends by itself, and blocks nothing", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		role, other := ada.AddsRole(made, "Reports", "read_only"), ada.AddsRole(made, "Jobs", "read_only")
		ada.Revokes(made, role)
		s.OK(s.ByHand.Obstruct(role.Username, true))
		_, err := ada.DeleteRole(made.ID, role.RoleID)
		s.Refused(err, "MANAGED_ROLE_CONFLICT")
		s.That(ada.FindsRole(made, role).Status == "revoked", "it is %+v", ada.FindsRole(made, role))
		ada.Rotates(made, other, "rotate-1")

		s.OK(s.ByHand.Obstruct(role.Username, false))
		ada.Deletes(made, role)
	}},
}
