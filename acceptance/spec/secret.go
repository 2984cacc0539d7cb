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
	{Name: "the passwords of roles and of unfinished rotations outlive the key that they were encrypted with", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			role, old := ada.AddsLogin(made, "Reports", "read_only")
			still, login := ada.AddsLogin(made, "Jobs", "read_only")
			runtime := ada.RevealsLogin(made, "runtime").LogIn()
			s.losesAgent()
			begun := must(ada.ChangeRole(made.ID, role.RoleID, "rotate", "rotate-1"))(s)
			s.That(begun.Status == "pending", "the change is %+v", begun)
			for range 2 {
				s.OK(s.Operator.RotateSecrets())
				s.OK(s.Operator.DropOldSecretKeys())
			}
			s.OK(s.Agent.Start())
			s.completes(ada, made, role, begun)
			s.bothOut(old)
			s.bothIn(ada.Reveals(made, role).Login())
			s.That(ada.Reveals(made, still).Login() == login, "the re-encryption changed a password")
			s.That(ada.RevealsLogin(made, "runtime").LogIn() == runtime, "the re-encryption changed a password")
		}},
}
