package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// restoring are managed restores that are carried out.
var restoring = []Scenario{
	{Name: "a managed restore brings back what the backup holds", Needs: []Ability{Restoring}, Play: func(s *Stage) {
		ada, made := s.Owner()
		session := s.Connects(made.Login())
		s.OK(session.Write("kept"))
		file := ada.FinishesBackup(made.ID)
		s.OK(session.Write("lost"))
		o := ada.Reserves(made, file, "deploy-1")
		s.That(o.Type == "restore" && o.Status == "queued" && o.Stage == "queued" && o.Progress == 0, "it began as %+v", o)
		s.That(session.Alive(), "the reservation has ended a session")

		done := ada.RestoresManaged(made, file, "deploy-1")
		s.That(done.ID == o.ID && done.Progress == 100 && done.Error == nil && done.FinishedAt != nil &&
			string(*done.Result) == `{"filename":"`+string(file)+`","notes":[]}`, "it ended as %+v, %s", done, *done.Result)
		s.Eventually("the session of before ends", session.Ended)
		s.hasNotes(ada, made, "kept")
		s.OK(s.Connects(made.Login()).Write("new"))
		s.hasNotes(ada, made, "kept", "new")

		again := ada.Advances(done)
		s.That(again.Status == "succeeded" && again.FinishedAt.Equal(*done.FinishedAt), "it is %+v", again)
		log := ada.ReadsActivity(made.ID)
		acted := func(action string) int {
			return len(slices.DeleteFunc(slices.Clone(log), func(e wire.Activity) bool { return string(e.Action) != action }))
		}
		s.That(acted("restore.requested") == 1 && acted("restore.finished") == 1, "the log is %+v", log)
	}},
}
