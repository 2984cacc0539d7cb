package spec

import "github.com/pgherd/pgherd/adapters/apiclient"

var quotas = []Scenario{
	{Name: "a free account has no access to the API", Play: func(s *Stage) {
		eve := s.Customer("free")
		s.Refused(refusal(eve.Databases.List(ctx, apiclient.Page{})), "PLAN_API_ACCESS_REQUIRED")
		s.Refused(refusal(eve.CreateDatabase(NewDatabase{Name: s.Name("shop"), DisplayName: "D"})), "PLAN_LIMIT")
	}},
	{Name: "an account has no more databases than its quota", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 2))
		ada.Creates("one")
		ada.Creates("two")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("three"), DisplayName: "D"})), "PLAN_LIMIT")

		s.OK(s.Operator.SetQuota(ada.Account, 3))
		ada.Creates("three")
	}},
	{Name: "many requests at once do not get past the quota", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 3))
		made, refused := s.manyCreate(ada, 12)
		s.That(made == 3 && refused == 9, "%d were made and %d refused; want 3 and 9", made, refused)
		s.That(len(ada.SeesAll()) == 3, "%d exist", len(ada.SeesAll()))
	}},
	{Name: "a creation that is refused takes no place in the quota", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		taken := s.Customer("pro").Creates("taken")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: taken.Name, DisplayName: "D"})), "VALIDATION_ERROR", "name")
		ada.Creates("one")
	}},
}

// manyCreate asks for n databases at once, on all hosts, and counts what came of it.
func (s *Stage) manyCreate(c *Customer, n int) (made, refused int) {
	s.Helper()
	errs := s.atOnce(n, func(i int) error {
		_, err := s.Hosts[i%len(s.Hosts)](c.Key.Text).CreateDatabase(NewDatabase{Name: s.Name("crowd"), DisplayName: "D"})
		return err
	})
	for _, err := range errs {
		if err == nil {
			made++
			continue
		}
		s.Refused(err, "PLAN_LIMIT")
		refused++
	}
	return made, refused
}
