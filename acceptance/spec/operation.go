package spec

var operating = []Scenario{
	{Name: "a queued backup is canceled at once", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		s.stopsBatch()
		queued := ada.BacksUp(made.ID)

		canceled, err := ada.CancelOperation(queued.ID)
		s.OK(err)
		s.That(canceled.Status == "canceled" && canceled.FinishedAt != nil, "it is %+v", canceled)
		s.OK(s.Batch.Start())
		s.Pass(glance)
		again := ada.Follows(queued)
		s.That(again.Status == "canceled", "it became %s", again.Status)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a backup was made")
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a running backup is canceled, and leaves no file", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		s.OK(s.Connects(made.Login()).Write("row"))
		release, err := s.HoldBackup(made)
		s.OK(err)
		s.Cleanup(release)
		started := ada.BacksUp(made.ID)
		s.Eventually("it runs", func() bool {
			o, err := ada.Operation(started.ID)
			s.OK(err)
			return o.Status == "running"
		})
		o, err := ada.CancelOperation(started.ID)
		s.OK(err)
		s.That(o.Status == "running" || o.Status == "canceled", "it is %s", o.Status)
		done := ada.Follows(started)
		s.That(done.Status == "canceled" && done.Error == nil, "it ended as %s: %+v", done.Status, done.Error)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a file is listed")
		release()
		ada.FinishesBackup(made.ID)
	}},
	{Name: "what is final cannot be canceled, what is canceled stays so", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		done := ada.Follows(ada.BacksUp(made.ID))
		_, err := ada.CancelOperation(done.ID)
		s.Refused(err, "DATABASE_STATE_CONFLICT")

		s.stopsBatch()
		queued := ada.BacksUp(made.ID)
		for range 2 {
			canceled, err := ada.CancelOperation(queued.ID)
			s.OK(err)
			s.That(canceled.Status == "canceled", "it is %s", canceled.Status)
		}
	}},
	{Name: "a database has one open operation at a time", Alone: true, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made, other := ada.Creates("orders"), ada.Creates("other")
		s.stopsBatch()
		queued := ada.BacksUp(made.ID)
		_, err := ada.StartBackup(made.ID)
		s.Refused(err, "DATABASE_STATE_CONFLICT")
		_, err = ada.SetLifecycle(made.ID, "stop")
		s.Refused(err, "DATABASE_STATE_CONFLICT")
		ada.BacksUp(other.ID)

		s.OK(s.Batch.Start())
		ada.Follows(queued)
		ada.Sets(made.ID, "stop", "stopped")
	}},
	{Name: "many backups at once are each made once", Play: func(s *Stage) {
		ada := s.Customer("pro")
		var all []Created
		for range 5 {
			all = append(all, ada.Creates("orders"))
		}
		errs := s.atOnce(3*len(all), func(i int) error {
			_, err := s.Hosts[i%len(s.Hosts)](ada.Key.Text).StartBackup(all[i%len(all)].ID)
			return err
		})
		started := 0
		for _, err := range errs {
			if err == nil {
				started++
				continue
			}
			s.Refused(err, "DATABASE_STATE_CONFLICT")
		}
		listed, finished := 0, 0
		for _, db := range all {
			operations, err := ada.Operations(db.ID, Page{})
			s.OK(err)
			for _, o := range operations.Data {
				listed++
				s.That(ada.Follows(o).Status == "succeeded", "a backup is %s", ada.Follows(o).Status)
			}
			s.That(len(ada.ListsBackups(db.ID)) == len(operations.Data), "%d files of %d backups",
				len(ada.ListsBackups(db.ID)), len(operations.Data))
			for _, e := range ada.ReadsActivity(db.ID) {
				if e.Action == "backup.finished" {
					finished++
				}
			}
		}
		s.That(started >= len(all) && listed == started && finished == started,
			"%d were started, %d are listed and %d were finished", started, listed, finished)
	}},
	{Name: "the operations of a database are listed newest first, the service's own are not", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		ada.Sets(made.ID, "restart", "active")
		first := ada.Follows(ada.BacksUp(made.ID))
		s.Pass(glance)
		second := ada.Follows(ada.BacksUp(made.ID))
		list, err := ada.Operations(made.ID, Page{})
		s.OK(err)
		s.That(len(list.Data) == 2 && list.Data[0].ID == second.ID && list.Data[1].ID == first.ID, "the list is %+v", list.Data)
	}},
}

// stopsBatch keeps operations queued until the story starts the batch host again, or ends.
func (s *Stage) stopsBatch() {
	s.Helper()
	s.OK(s.Batch.Stop())
	s.Cleanup(func() {
		if err := s.Batch.Start(); err != nil {
			s.Error(err)
		}
	})
}
