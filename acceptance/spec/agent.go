package spec

import "slices"

var losingTheAgent = []Scenario{
	{Name: "without its agent a creation fails cleanly: no place in the quota, no name taken, nothing left", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			s.OK(s.Operator.SetQuota(ada.Account, 1))
			ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
			before := s.serverObjects()

			s.losesAgent()
			_, err := ada.CreateDatabase(ask)
			s.Refused(err, "AGENT_ERROR")
			s.That(len(ada.SeesAll()) == 0, "ada sees %v", ada.SeesAll())

			s.OK(s.Agent.Start())
			s.That(slices.Equal(s.serverObjects(), before), "the server has %v; it had %v", s.serverObjects(), before)
			s.Connects(ada.CreatesAs(ask).Login())
		}},
	{Name: "beside a server whose agent nobody reaches, creations go to the one that answers", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			first := ada.Creates("before")
			retire, err := s.Operator.AddDeadServer()
			s.OK(err)
			s.Cleanup(func() {
				if err := retire(); err != nil {
					s.Error(err)
				}
			})
			for _, key := range []string{"deploy-1", "deploy-2"} {
				ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: key}
				made := ada.CreatesAs(ask)
				s.That(made.Host == first.Host, "it is at %s; want %s", made.Host, first.Host)
				s.Connects(made.Login())
				s.That(ada.CreatesAs(ask).Password == made.Password, "the repeated request gives another password")
			}
		}},
	{Name: "without its agent a database is still shown, and its logins still work", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		size := ada.Sees(made.ID).SizeBytes
		s.losesAgent()
		s.Pass(2 * glance)
		s.That(ada.Sees(made.ID).SizeBytes == size, "the size is now %d; it was %d", ada.Sees(made.ID).SizeBytes, size)
		s.Connects(made.Login())
	}},
	{Name: "without its agent backups and lifecycle are refused, and change nothing", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		backup := ada.FinishesBackup(made.ID)
		s.losesAgent()

		_, err := ada.StartBackup(made.ID)
		s.Refused(err, "AGENT_ERROR")
		_, err = ada.DownloadBackup(made.ID, backup.Filename)
		s.Refused(err, "AGENT_ERROR")
		_, err = ada.SetLifecycle(made.ID, "stop")
		s.Refused(err, "AGENT_ERROR")
		s.That(ada.Sees(made.ID).Status == "active", "it is %s", ada.Sees(made.ID).Status)

		s.OK(s.Agent.Start())
		ada.Downloads(made.ID, backup.Filename)
		ada.Sets(made.ID, "stop", "stopped")
	}},
	{Name: "an allowlist change without the agent is stored, and enforced when it is back", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		s.losesAgent()
		_, err := ada.AddToAllowlist(made.ID, Away.String(), "")
		s.Refused(err, "AGENT_ERROR")
		list, err := ada.Allowlist(made.ID)
		s.OK(err)
		s.That(len(list) == 1 && list[0].CIDR == Away.String()+"/32", "the list is %+v", list)

		s.OK(s.Agent.Start())
		s.Eventually("the entry is enforced", func() bool {
			session, err := s.Connect(made.Login())
			if err == nil {
				session.Close()
			}
			return err != nil
		})
	}},
	{Name: "a deletion without the agent takes the backup off the list, and is finished when it is back", Alone: true,
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			backup := ada.FinishesBackup(made.ID)
			s.losesAgent()
			s.Refused(ada.DeleteBackup(made.ID, backup.Filename), "AGENT_ERROR")
			s.That(len(ada.ListsBackups(made.ID)) == 0, "it is still listed")
			s.OK(s.Agent.Start())
			s.Eventually("the file is deleted", func() bool {
				return ada.ReadsActivity(made.ID)[0].Action == "backup.deleted"
			})
		}},
	{Name: "an agent that goes away during a backup and comes back finishes it", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		s.OK(s.Connects(made.Login()).Write("kept"))
		s.OK(s.Batch.Stop())
		started := ada.BacksUp(made.ID)
		s.losesAgent()
		s.OK(s.Batch.Start())
		s.Eventually("a worker has tried", func() bool {
			o, err := ada.Operation(started.ID)
			s.OK(err)
			return o.Status == "running"
		})
		s.OK(s.Agent.Start())
		done := ada.Follows(started)
		s.That(done.Status == "succeeded", "it ended as %s: %+v", done.Status, done.Error)
		s.holds(ada.Downloads(made.ID, ada.ListsBackups(made.ID)[0].Filename), "kept")
	}},
	{Name: "an answer of the agent that is lost makes no second database", Alone: true, Needs: []Ability{BreaksThings},
		Play: func(s *Stage) {
			ada := s.Customer("pro")
			ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: "deploy-1"}
			s.Faults.LoseReplies(1)
			_, err := ada.CreateDatabase(ask)
			s.Refused(err, "AGENT_ERROR")
			s.Eventually("the database is made in the background", func() bool {
				list, err := ada.Databases(Page{})
				s.OK(err)
				return len(list.Data) == 1 && list.Data[0].Status == "active"
			})
			s.Connects(ada.CreatesAs(ask).Login())
			s.That(len(ada.SeesAll()) == 1, "%d databases exist", len(ada.SeesAll()))
		}},
	{Name: "an old agent that lacks the backup routes makes download and delete unavailable", Alone: true,
		Needs: []Ability{BreaksThings}, Play: func(s *Stage) {
			ada := s.Customer("pro")
			made := ada.Creates("orders")
			backup := ada.FinishesBackup(made.ID)
			s.Faults.OldAgent(true)
			s.Cleanup(func() { s.Faults.OldAgent(false) })
			_, err := ada.DownloadBackup(made.ID, backup.Filename)
			s.Refused(err, "AGENT_ROUTE_UNAVAILABLE")
			s.Refused(ada.DeleteBackup(made.ID, backup.Filename), "AGENT_ROUTE_UNAVAILABLE")
		}},
}

// losesAgent stops the agent until the story starts it again, or ends.
func (s *Stage) losesAgent() {
	s.Helper()
	s.OK(s.Agent.Stop())
	s.Cleanup(func() {
		if err := s.Agent.Start(); err != nil {
			s.Error(err)
		}
	})
}

func (s *Stage) serverObjects() []string {
	s.Helper()
	objects, err := s.Operator.ServerObjects()
	s.OK(err)
	slices.Sort(objects)
	return objects
}
