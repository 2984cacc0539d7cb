package spec

var maintaining = []Scenario{
	{Name: "in a maintenance window valid keys are told so, others are still nobody, and databases work on", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			s.OK(s.Operator.SetMaintenance(true))
			s.Cleanup(func() {
				if err := s.Operator.SetMaintenance(false); err != nil {
					s.Error(err)
				}
			})
			_, err := ada.Database(made.ID)
			s.Refused(err, "MAINTENANCE")
			_, err = ada.CreateDatabase(NewDatabase{Name: s.Name("shop"), DisplayName: "D"})
			s.Refused(err, "MAINTENANCE")
			_, err = s.Hosts[1]("pgh_unknown").Databases(Page{})
			s.Refused(err, "UNAUTHORIZED")
			s.Connects(made.Login())

			s.OK(s.Operator.SetMaintenance(false))
			ada.Sees(made.ID)
		}},
}
