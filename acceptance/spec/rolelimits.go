package spec

var limitingRoles = []Scenario{
	{Name: "a role has as many connections as it was given", Both: true, Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRoleAs(made, NewRole{DisplayName: "R", AccessProfile: "custom", ConnectionLimit: 3, IdempotencyKey: "k"})
		login := ada.Reveals(made, role).Login()
		for range 3 {
			s.Connects(login)
		}
		rows := must(s.SQL.Run(made.Login(), "SELECT count(*) FROM pg_stat_activity WHERE usename = "+literal(role.Username)))(s)
		s.That(rows[0] == "3", "it has %v", rows)
		s.Connects(made.Login())
	}},
}
