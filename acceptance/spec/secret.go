package spec

var keepingSecrets = []Scenario{
	{Name: "the key that stored secrets are encrypted with is changed while the service runs", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
		made := ada.CreatesAs(ask)
		for range 2 {
			s.OK(s.Operator.RotateSecrets())
			for _, host := range s.Hosts {
				again := must(host(ada.Key.Text).CreateDatabase(ask))(s)
				s.That(again.Password == made.Password, "the replay has another password")
			}
			s.Connects(ada.Creates("later").Login())
			s.OK(s.Operator.DropOldSecretKeys())
		}
		ada.FinishesBackup(made.ID)
	}},
}
