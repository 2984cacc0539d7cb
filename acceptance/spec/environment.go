package spec

import (
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
)

var labelling = []Scenario{
	{Name: "the environment label can be changed and taken away", Play: func(s *Stage) {
		ada, made := s.Owner()
		for _, label := range []*database.Environment{
			new(database.Production), new(database.Staging), new(database.Development), new(database.Other), nil,
		} {
			changed := must(ada.SetEnvironment(made.ID, label))(s)
			seen := ada.Sees(made.ID).Environment
			s.That(sameLabel(changed, label) && sameLabel(seen, label), "the answer says %v and the record %v", changed, seen)
		}
	}},
	{Name: "a change of label stands in the activity log, a repetition does not", Play: func(s *Stage) {
		ada, made := s.Owner()
		for range 2 {
			must(ada.SetEnvironment(made.ID, new(database.Staging)))(s)
		}
		changed := s.only(ada.ReadsActivity(made.ID), audit.EnvironmentChanged)
		s.That(changed.Details["to"] == "staging", "the log says %+v", changed)
	}},
}

func sameLabel(a, b *database.Environment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
