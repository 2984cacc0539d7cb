package spec

var quotas = []Scenario{
	{Name: "an account has no more databases than its quota", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 2))
		ada.Creates("one")
		ada.Creates("two")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("three"), DisplayName: "D"})), "PLAN_LIMIT")

		s.OK(s.Operator.SetQuota(ada.Account, 3))
		ada.Creates("three")
	}},
}
