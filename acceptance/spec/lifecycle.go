package spec

var startingAndStopping = []Scenario{
	{Name: "a stopped database closes its connections and lets nobody in until it is started", Play: func(s *Stage) {
		ada, made := s.Owner()
		open := s.Connects(made.Login())

		ada.Sets(made.ID, "stop", "stopped")
		s.That(open.Ended(), "a connection outlived the stop")
		s.ShutOut(made.Login())
		s.That(ada.Sees(made.ID).Status == "stopped", "it is %s", ada.Sees(made.ID).Status)

		ada.Sets(made.ID, "start", "active")
		s.Connects(made.Login())
	}},
	{Name: "a stop shuts both entries of the pooler", Play: func(s *Stage) {
		ada, made := s.Owner()
		second := made.Login()
		second.Database += ".transaction"
		open := s.Connects(second)
		ada.Sets(made.ID, "stop", "stopped")
		s.That(open.Ended(), "a connection to the second entry outlived the stop")
		s.ShutOut(second)
		ada.Sets(made.ID, "start", "active")
		s.Connects(second)
	}},
	{Name: "a restart closes the connections and stays open", Play: func(s *Stage) {
		ada, made := s.Owner()
		open := s.Connects(made.Login())
		ada.Sets(made.ID, "restart", "active")
		s.That(open.Ended(), "a connection outlived the restart")
		s.Connects(made.Login())
	}},
	{Name: "a stop that the server refuses half done is undone, and works once nothing is in the way", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		ada.Revokes(made, role)
		s.OK(s.OnServer.Obstruct(role.Username, true))
		s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "AGENT_ERROR")
		s.That(ada.Sees(made.ID).Status == "active", "it is %s", ada.Sees(made.ID).Status)
		s.Connects(made.Login())

		s.OK(s.OnServer.Obstruct(role.Username, false))
		ada.Sets(made.ID, "stop", "stopped")
		s.ShutOut(made.Login())
	}},
}
