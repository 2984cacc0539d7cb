package spec

var operating = []Scenario{
	{Name: "a queued backup is canceled at once", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.stopsBatch()
		queued := ada.BacksUp(made.ID)

		canceled := must(ada.Operations.Cancel(ctx, queued.ID))(s)
		s.That(canceled.Operation.Status == "canceled" && canceled.Operation.FinishedAt != nil, "it is %+v", canceled)
		s.OK(s.Batch.Start())
		s.Pass(glance)
		again := ada.Follows(queued)
		s.That(again.Status == "canceled", "it became %s", again.Status)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a backup was made")
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a running backup is canceled, and leaves no file", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("row"))
		release := must(s.HoldBackup(made))(s)
		s.Cleanup(release)
		started := ada.BacksUp(made.ID)
		s.Eventually("it runs", func() bool {
			return must(ada.Operations.Get(ctx, started.ID))(s).Status == "running"
		})
		o := must(ada.Operations.Cancel(ctx, started.ID))(s).Operation
		s.That(o.Status == "running" || o.Status == "canceled", "it is %s", o.Status)
		done := ada.Follows(started)
		s.That(done.Status == "canceled" && done.Error == nil, "it ended as %s: %+v", done.Status, done.Error)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a file is listed")
		release()
		ada.FinishesBackup(made.ID)
	}},
	{Name: "what is final cannot be canceled, what is canceled stays so", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		done := ada.Follows(ada.BacksUp(made.ID))
		s.Refused(refusal(ada.Operations.Cancel(ctx, done.ID)), "DATABASE_STATE_CONFLICT")

		s.stopsBatch()
		queued := ada.BacksUp(made.ID)
		for range 2 {
			canceled := must(ada.Operations.Cancel(ctx, queued.ID))(s)
			s.That(canceled.Operation.Status == "canceled", "it is %s", canceled.Operation.Status)
		}
	}},
	{Name: "a database has one open operation at a time", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		s.stopsBatch()
		queued := ada.BacksUp(made.ID)
		s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "DATABASE_STATE_CONFLICT")
		s.Refused(refusal(ada.SetLifecycle(made.ID, "stop")), "DATABASE_STATE_CONFLICT")
		ada.BacksUp(other.ID)

		s.OK(s.Batch.Start())
		ada.Follows(queued)
		ada.Sets(made.ID, "stop", "stopped")
	}},
	{Name: "the operations of a database are listed newest first, the service's own are not", Play: func(s *Stage) {
		ada, made := s.Owner()
		ada.Sets(made.ID, "restart", "active")
		first := ada.Follows(ada.BacksUp(made.ID))
		s.Pass(glance)
		second := ada.Follows(ada.BacksUp(made.ID))
		list := ada.ListsOperations(made.ID)
		s.That(len(list) == 2 && list[0].ID == second.ID && list[1].ID == first.ID, "the list is %+v", list)
	}},
}

// stopsBatch keeps operations queued until the story starts the batch host again, or ends.
func (s *Stage) stopsBatch() {
	s.Helper()
	s.OK(s.Batch.Stop())
	s.finally(s.Batch.Start)
}
