package spec

import "github.com/pgherd/pgherd/core/database"

var repeating = []Scenario{
	{Name: "a repeated request with the same key gets the same database and password", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
		first := ada.CreatesAs(ask)
		again := ada.CreatesAs(ask)
		s.That(again == first, "the second answer is\n%+v\nthe first was\n%+v", again, first)
		s.That(len(ada.SeesAll()) == 1, "%d databases exist", len(ada.SeesAll()))
		s.Connects(again.Login())
	}},
	{Name: "a repeated request is not told a password that its owner has replaced", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, model := range []database.RoleModel{"managed", "single_login"} {
			ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", RoleModel: model, IdempotencyKey: "deploy-" + string(model)}
			first := ada.CreatesAs(ask)
			s.OK(s.OnServer.SetPassword(first.Login(), "chosen by the owner"))
			again := ada.CreatesAs(ask)
			s.That(again.ID == first.ID && again.Status == "active", "it is another database: %+v", again.ID)
			s.That(again.Password == "" && again.ConnectionString == "", "%s: the replay tells the old password", model)
		}
	}},
	{Name: "the same key with another request is a conflict", Play: func(s *Stage) {
		ada := s.Customer("pro")
		ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
		ada.CreatesAs(ask)
		for _, change := range []func(*NewDatabase){
			func(n *NewDatabase) { n.Name = s.Name("other") },
			func(n *NewDatabase) { n.DisplayName = "Other" },
			func(n *NewDatabase) { n.RoleModel = "single_login" },
			func(n *NewDatabase) { n.Environment = "staging" },
			func(n *NewDatabase) { n.ScheduledBackup = "daily" },
			func(n *NewDatabase) { n.PostgresVersion = new(17) },
		} {
			other := ask
			change(&other)
			s.Refused(refusal(ada.CreateDatabase(other)), "DATABASE_STATE_CONFLICT")
		}
		s.That(len(ada.SeesAll()) == 1, "%d databases exist", len(ada.SeesAll()))
	}},
	{Name: "a refused request does not use its key up", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 0))
		ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
		s.Refused(refusal(ada.CreateDatabase(ask)), "PLAN_LIMIT")
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		ada.CreatesAs(ask)
	}},
}
