package spec

import (
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
)

// ordering is what operators do with customers' databases in their own name.
var ordering = []Scenario{
	{Name: "an operator stops, starts, backs up and restores a database, and its log says who did", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.CreatesAs(NewDatabase{Name: s.Name("shop"), DisplayName: "Shop", ScheduledBackup: database.NoSchedule})
			session := s.Connects(made.Login())
			s.OK(session.Write("kept"))
			s.OK(s.Operator.BackUp(made.ID, "before the disk is changed"))
			file := ada.ListsBackups(made.ID)[0].Filename
			s.OK(session.Write("lost"))
			s.OK(s.Operator.SetLifecycle(made.ID, database.Stop, "the disk is changed"))
			s.Eventually("the session ends", session.Ended)
			s.ShutOut(made.Login())
			s.That(ada.Sees(made.ID).Status == "stopped", "it is %s", ada.Sees(made.ID).Status)
			s.OK(s.Operator.SetLifecycle(made.ID, database.Start, "the disk is changed"))
			s.OK(s.Operator.Restore(made.ID, file, "as the customer asked on the telephone"))
			log := ada.ReadsActivity(made.ID)
			s.hasNotes(ada, made, "kept")
			for what, why := range map[audit.Action]string{
				"backup.requested": "before the disk is changed", "database.stopped": "the disk is changed",
				"database.started": "the disk is changed", "restore.requested": "as the customer asked on the telephone",
			} {
				e := s.only(log, what)
				s.That(e.Actor == "operator" && e.Person == nil && e.Details["reason"] == why && e.Details["operator"] != "",
					"%s: the log has %+v", what, e)
			}
		}},
	{Name: "a database that an operator makes is its account's, and the log says who made it", Play: func(s *Stage) {
		ada, name := s.Customer("pro"), s.Name("shop")
		of, password, err := s.Operator.CreateDatabase(ada.Account, name, "as agreed")
		s.OK(err)
		found := ada.Sees(of)
		s.That(found.Name == name && found.Status == "active", "it is %+v", found)
		s.Connects(Login{Database: name, Username: name, Password: password, From: Home})
		e := s.only(ada.ReadsActivity(of), audit.DatabaseCreated)
		s.That(e.Actor == "operator" && e.Details["reason"] == "as agreed", "the log has %+v", e)
	}},
	{Name: "what an operator does to a database of a suspended account leaves it closed", Needs: []Ability{Restoring},
		Play: func(s *Stage) {
			ada, made := s.Owner()
			file := ada.FinishesBackup(made.ID)
			s.OK(s.Operator.Suspend(ada.Account, "unpaid"))
			s.Eventually("it is closed", func() bool { return !s.getsIn(made.Login()) })
			for _, do := range []func() error{
				func() error { return s.Operator.BackUp(made.ID, "a copy to be sure") },
				func() error { return s.Operator.Restore(made.ID, file, "a test") },
				func() error { return s.Operator.SetLifecycle(made.ID, database.Stop, "a test") },
				func() error { return s.Operator.SetLifecycle(made.ID, database.Start, "a test") },
			} {
				s.OK(do())
				s.ShutOut(made.Login())
			}
			s.OK(s.Operator.Resume(ada.Account, "paid"))
			s.Eventually("they get in", func() bool { return s.getsIn(made.Login()) })
		}},
}
