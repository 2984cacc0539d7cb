package spec

import "github.com/pgherd/pgherd/adapters/apiclient"

var quotas = []Scenario{
	{Name: "a free account has no access to the API", Play: func(s *Stage) {
		eve := s.Customer("free")
		s.Refused(refusal(eve.Databases.List().Page(ctx, apiclient.Page{})), "PLAN_API_ACCESS_REQUIRED")
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
	{Name: "a creation that is refused takes no place in the quota", Play: func(s *Stage) {
		ada := s.Customer("pro")
		s.OK(s.Operator.SetQuota(ada.Account, 1))
		taken := s.Customer("pro").Creates("taken")
		s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: taken.Name, DisplayName: "D"})), "VALIDATION_ERROR", "name")
		ada.Creates("one")
	}},
}
