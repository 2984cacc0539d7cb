package spec

var labelling = []Scenario{
	{Name: "the environment label can be changed and taken away", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for _, label := range []*string{Text("production"), Text("staging"), Text("development"), Text("other"), nil} {
			changed, err := ada.SetEnvironment(made.ID, label)
			s.OK(err)
			seen := ada.Sees(made.ID).Environment
			s.That(sameText(changed, label) && sameText(seen, label), "the answer says %v and the record %v", changed, seen)
		}
	}},
	{Name: "an unknown label is refused", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for _, label := range []string{"", "prod", "Production"} {
			_, err := ada.SetEnvironment(made.ID, Text(label))
			s.Refused(err, "VALIDATION_ERROR", "environment")
		}
	}},
	{Name: "a change of label stands in the activity log, a repetition does not", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		for range 2 {
			_, err := ada.SetEnvironment(made.ID, Text("staging"))
			s.OK(err)
		}
		log := ada.ReadsActivity(made.ID)
		s.That(log[0].Action == "database.environment_changed" && log[0].Details["to"] == "staging", "the log says %+v", log[0])
		s.That(log[1].Action == "database.created", "the log says %+v", log[1])
	}},
}

func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
