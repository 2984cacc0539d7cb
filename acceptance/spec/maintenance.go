package spec

import "github.com/pgherd/pgherd/adapters/apiclient"

var maintaining = []Scenario{
	{Name: "in a maintenance window valid keys are told so, others are still nobody, and databases work on", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			s.OK(s.Operator.SetMaintenance(true))
			s.finally(func() error { return s.Operator.SetMaintenance(false) })
			s.Refused(refusal(ada.Databases.Get(ctx, made.ID)), "MAINTENANCE")
			s.Refused(refusal(ada.CreateDatabase(NewDatabase{Name: s.Name("shop"), DisplayName: "D"})), "MAINTENANCE")
			s.Refused(refusal(s.Hosts[1]("pgh_unknown").Databases.List().Page(ctx, apiclient.Page{})), "UNAUTHORIZED")
			s.Connects(made.Login())

			s.OK(s.Operator.SetMaintenance(false))
			ada.Sees(made.ID)
		}},
}
