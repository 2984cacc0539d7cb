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
			s.Refused(refusal(ada.CreateDatabase(ask)), "AGENT_ERROR")
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
			s.finally(retire)
			for _, key := range []string{"deploy-1", "deploy-2"} {
				ask := NewDatabase{Name: s.Name("orders"), DisplayName: "Orders", IdempotencyKey: key}
				made := ada.CreatesAs(ask)
				s.That(made.Host == first.Host, "it is at %s; want %s", made.Host, first.Host)
				s.Connects(made.Login())
				s.That(ada.CreatesAs(ask).Password == made.Password, "the repeated request gives another password")
			}
		}},
	{Name: "without its agent a database is still shown, and its logins still work", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		size := ada.Sees(made.ID).SizeBytes
		s.losesAgent()
		s.Pass(2 * glance)
		s.That(ada.Sees(made.ID).SizeBytes == size, "the size is now %d; it was %d", ada.Sees(made.ID).SizeBytes, size)
		s.Connects(made.Login())
	}},
	{Name: "without its agent backups, lifecycle and timeouts are refused, and change nothing", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		backup := ada.FinishesBackup(made.ID)
		ada.SetsTimeouts(made.ID, "standard", "one")
		s.losesAgent()

		s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "AGENT_ERROR")
		s.Refused(refusal(ada.DownloadBackup(made.ID, backup)), "AGENT_ERROR")
		s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "AGENT_ERROR")
		s.That(ada.Sees(made.ID).Status == "active", "it is %s", ada.Sees(made.ID).Status)
		s.Refused(refusal(ada.SetQueryTimeouts(made.ID, "short", "two")), "AGENT_ERROR")
		s.shownWithoutAgent(ada, made.ID, "standard")

		s.OK(s.Agent.Start())
		ada.Downloads(made.ID, backup)
		ada.SetsTimeouts(made.ID, "short", "two")
		ada.Sets(made.ID, "stop", "stopped")
	}},
	{Name: "an allowlist change without the agent is stored, and enforced when it is back", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.losesAgent()
		s.Refused(refusal(ada.AddToAllowlist(made.ID, Away.String(), "")), "AGENT_ERROR")
		list := must(ada.Allowlist.List(ctx, made.ID))(s)
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
			ada, made := s.Owner()
			backup := ada.FinishesBackup(made.ID)
			s.losesAgent()
			s.Refused(ada.Backups.Delete(ctx, made.ID, backup), "AGENT_ERROR")
			s.That(len(ada.ListsBackups(made.ID)) == 0, "it is still listed")
			s.OK(s.Agent.Start())
			s.Eventually("the file is deleted", func() bool {
				return ada.ReadsActivity(made.ID)[0].Action == "backup.deleted"
			})
		}},
	{Name: "an agent that goes away during a backup and comes back finishes it", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("kept"))
		s.stopsBatch()
		started := ada.BacksUp(made.ID)
		s.losesAgent()
		s.OK(s.Batch.Start())
		s.Eventually("a worker has tried", func() bool {
			return must(ada.Operations.Get(ctx, started.ID))(s).Status == "running"
		})
		s.OK(s.Agent.Start())
		done := ada.Follows(started)
		s.That(done.Status == "succeeded", "it ended as %s: %+v", done.Status, done.Error)
		s.holds(ada.Downloads(made.ID, ada.ListsBackups(made.ID)[0].Filename), "kept")
	}},
}

// losesAgent stops the agent until the story starts it again, or ends.
func (s *Stage) losesAgent() {
	s.Helper()
	s.OK(s.Agent.Stop())
	s.finally(s.Agent.Start)
}

func (s *Stage) serverObjects() []string {
	s.Helper()
	objects := must(s.Operator.ServerObjects())(s)
	slices.Sort(objects)
	return objects
}
