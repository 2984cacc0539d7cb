package spec

import (
	"github.com/pgherd/pgherd/core/database"
)

var startingAndStopping = []Scenario{
	{Name: "a stopped database closes its connections and lets nobody in until it is started", Play: func(s *Stage) {
		ada, made := s.Owner()
		open := s.Connects(made.Login())

		ada.Sets(made.ID, "stop", "stopped")
		s.That(open.Ended(), "a connection outlived the stop")
		s.ShutOut(made.Login())
		s.That(ada.Sees(made.ID).Status == "stopped", "it is %s", ada.Sees(made.ID).Status)

		ada.Sets(made.ID, "start", "active")
		s.Connects(made.Login())
	}},
	{Name: "a stop shuts both entries of the pooler", Play: func(s *Stage) {
		ada, made := s.Owner()
		second := made.Login()
		second.Database += ".transaction"
		open := s.Connects(second)
		ada.Sets(made.ID, "stop", "stopped")
		s.That(open.Ended(), "a connection to the second entry outlived the stop")
		s.ShutOut(second)
		ada.Sets(made.ID, "start", "active")
		s.Connects(second)
	}},
	{Name: "of many actions at once each is done or refused, and the last one holds", Play: func(s *Stage) {
		ada, made := s.Owner()
		actions := []database.Event{"stop", "start", "restart"}
		errs := s.atOnce(12, func(i int) error {
			_, err := s.Hosts[i%len(s.Hosts)](ada.Key.Text).SetLifecycle(made.ID, actions[i%len(actions)])
			return err
		})
		for _, err := range errs {
			if err != nil {
				s.Refused(err, "DATABASE_STATE_CONFLICT")
			}
		}
		if ada.Sees(made.ID).Status == "active" {
			s.Connects(made.Login())
		} else {
			s.ShutOut(made.Login())
		}
		ada.Sets(made.ID, "stop", "stopped")
		s.ShutOut(made.Login())
		ada.Sets(made.ID, "start", "active")
		s.Connects(made.Login())
	}},
	{Name: "a restart closes the connections and stays open", Play: func(s *Stage) {
		ada, made := s.Owner()
		open := s.Connects(made.Login())
		ada.Sets(made.ID, "restart", "active")
		s.That(open.Ended(), "a connection outlived the restart")
		s.Connects(made.Login())
	}},
	{Name: "a stop that the server refuses half done is undone, and works once nothing is in the way", Play: func(s *Stage) {
		ada, made := s.Owner()
		role := ada.AddsRole(made, "Reports", "read_only")
		ada.Revokes(made, role)
		s.OK(s.OnServer.Obstruct(role.Username, true))
		s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "AGENT_ERROR")
		s.That(ada.Sees(made.ID).Status == "active", "it is %s", ada.Sees(made.ID).Status)
		s.Connects(made.Login())

		s.OK(s.OnServer.Obstruct(role.Username, false))
		ada.Sets(made.ID, "stop", "stopped")
		s.ShutOut(made.Login())
	}},
	{Name: "what it is already is no error", Play: func(s *Stage) {
		ada, made := s.Owner()
		open := s.Connects(made.Login())
		ada.Sets(made.ID, "start", "active")
		s.That(open.Alive(), "a start of an active database ended a connection")
		ada.Sets(made.ID, "stop", "stopped")
		ada.Sets(made.ID, "stop", "stopped")
	}},
	{Name: "a key for selected databases starts a stopped one", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Sets(made.ID, "stop", "stopped")
		s.WithKey(ada.Account, made.ID).Sets(made.ID, "start", "active")
		s.Connects(made.Login())
	}},
	{Name: "a stop touches no other database", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		open := s.Connects(other.Login())
		ada.Sets(one.ID, "stop", "stopped")
		s.That(open.Alive(), "a connection to the other database ended")
		s.Connects(other.Login())
	}},
}
