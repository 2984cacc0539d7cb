package spec

var losingTheStorage = []Scenario{
	{Name: "without room a backup is refused at once, and works again when there is room", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.fillsUp()
		s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "BACKUP_STORAGE_FULL")
		list := ada.ListsOperations(made.ID)
		s.That(len(list) == 0, "something was queued: %+v", list)

		s.OK(s.Agent.SetFull(false))
		ada.FinishesBackup(made.ID)
	}},
	{Name: "a queued backup that finds no room any more fails and leaves nothing", Alone: true, Play: func(s *Stage) {
		ada, made := s.Owner()
		s.stopsBatch()
		queued := ada.BacksUp(made.ID)
		s.fillsUp()
		s.OK(s.Batch.Start())

		done := ada.Follows(queued)
		s.That(done.Status == "failed" && done.Error.Code == "BACKUP_STORAGE_FULL", "it ended as %s: %+v", done.Status, done.Error)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a file is listed")
		s.OK(s.Agent.SetFull(false))
		ada.FinishesBackup(made.ID)
	}},
	{Name: "while backups cannot be reached, a new one waits, nobody gets at an old one, and the operator is told why", Alone: true,
		Play: func(s *Stage) {
			ada, made := s.Owner()
			kept, deleted := ada.FinishesBackup(made.ID), ada.FinishesBackup(made.ID)
			s.OK(s.Agent.SetAway(true))
			s.finally(func() error { return s.Agent.SetAway(false) })
			waits := ada.BacksUp(made.ID)
			s.Refused(refusal(ada.DownloadBackup(made.ID, kept)), "BACKUP_STORAGE_UNAVAILABLE")
			s.Refused(ada.Backups.Delete(ctx, made.ID, deleted), "BACKUP_STORAGE_UNAVAILABLE")
			s.Eventually("the backup waits", func() bool {
				return must(ada.Operations.Get(ctx, waits.ID))(s).Stage == "storing"
			})
			wrong := must(s.Operator.CheckStorage())(s)
			s.That(wrong != "", "nothing is wrong")

			s.OK(s.Agent.SetAway(false))
			latest := s.fileOf(ada.Follows(waits))
			ada.Downloads(made.ID, kept)
			ada.Downloads(made.ID, latest)
			wrong = must(s.Operator.CheckStorage())(s)
			s.That(wrong == "", "it is wrong: %s", wrong)
			_ = ada.Backups.Delete(ctx, made.ID, deleted) // it may be gone by now
			s.That(len(ada.ListsBackups(made.ID)) == 2, "there are %+v", ada.ListsBackups(made.ID))
		}},
}

// fillsUp leaves no room for backups until the story gives it back, or ends.
func (s *Stage) fillsUp() {
	s.Helper()
	s.OK(s.Agent.SetFull(true))
	s.finally(func() error { return s.Agent.SetFull(false) })
}
