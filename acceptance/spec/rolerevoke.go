package spec

var revokingRoles = []Scenario{
	{Name: "a revoked role is shut out at once, and keeps its slot, its tables and its name", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		_, neighbour := ada.AddsLogin(made, "Jobs", "read_only")
		sessions, others := s.bothIn(login), s.bothIn(neighbour)
		change := ada.Revokes(made, role)
		s.That(change.Kind == "revoke" && change.CredentialGeneration == 1, "the change is %+v", change)
		s.closed(sessions...)
		s.bothOut(login)
		s.open(others...)
		s.That(ada.Revokes(made, role) == change, "a repetition answers otherwise")
		shown := ada.FindsRole(made, role)
		s.That(shown.Status == "revoked" && shown.Username == role.Username && shown.Ordinal == role.Ordinal, "it is %+v", shown)
		for what, err := range s.tryReady(ada, made, role) {
			s.Log(what)
			s.Refused(err, "MANAGED_ROLE_CONFLICT")
		}
	}},
	{Name: "a database that is stopped and started lets its roles in again, but no revoked one", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		revoked, old := ada.AddsLogin(made, "Old", "read_only")
		role, login := ada.AddsLogin(made, "Reports", "read_only")
		ada.Revokes(made, revoked)
		sessions := s.bothIn(login)
		ada.Sets(made.ID, "stop", "stopped")
		s.closed(sessions...)
		s.bothOut(login)
		s.Refused(s.tryOne(ada, made, role, "rotate"), "MANAGED_ROLE_CONFLICT")
		ada.Sets(made.ID, "start", "active")
		s.bothIn(login)
		s.bothOut(old)
		ada.Sets(made.ID, "restart", "active")
		s.bothIn(login)
		s.bothOut(old)
	}},
	{Name: "on a stopped database roles are revoked and deleted, and stay out when it is started", Both: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		revoked, first := ada.AddsLogin(made, "First", "read_only")
		deleted, second := ada.AddsLogin(made, "Second", "read_write")
		_, third := ada.AddsLogin(made, "Third", "custom")
		ada.Sets(made.ID, "stop", "stopped")
		ada.Revokes(made, revoked)
		s.That(ada.FindsRole(made, revoked).Status == "revoked", "it is %s", ada.FindsRole(made, revoked).Status)
		ada.Deletes(made, deleted)
		s.bothOut(third)
		ada.Sets(made.ID, "start", "active")
		s.bothOut(first)
		s.bothOut(second)
		s.bothIn(third)
		ada.Deletes(made, revoked)
	}},
}
