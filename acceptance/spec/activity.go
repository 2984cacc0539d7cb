package spec

import (
	"encoding/json"
	"slices"
	"strings"
)

var recording = []Scenario{
	{Name: "the activity log tells who did what, newest first, and no secret", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		entry := ada.Allows(made.ID, "127.0.0.0/8")
		s.OK(ada.RemoveFromAllowlist(made.ID, entry.ID))
		for _, action := range []string{"stop", "start", "restart"} {
			_, err := ada.SetLifecycle(made.ID, action)
			s.OK(err)
		}
		backup := ada.FinishesBackup(made.ID)
		ada.Downloads(made.ID, backup.Filename)
		s.OK(ada.DeleteBackup(made.ID, backup.Filename))

		log := ada.ReadsActivity(made.ID)
		var actions []string
		for _, e := range log {
			actions = append(actions, e.Action)
			s.That(e.Actor == "key:pgh_"+ada.Key.ID, "%s was done by %s", e.Action, e.Actor)
			s.That(e.ID != "" && !e.At.IsZero(), "an entry without ID or time: %+v", e)
		}
		want := []string{
			"backup.deleted", "backup.downloaded", "backup.finished", "backup.requested", "database.restarted",
			"database.started", "database.stopped", "allowlist.removed", "allowlist.added", "database.created",
		}
		s.inOrder(log, actions, want)
		s.noSecretIn(log, made.Password, ada.Key.Text)
	}},
	{Name: "what one database's log says concerns no other database", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		ada.Sets(one.ID, "stop", "stopped")
		log := ada.ReadsActivity(other.ID)
		s.That(len(log) == 1 && log[0].Action == "database.created", "the other's log has %+v", log)
	}},
}

// inOrder compares what happened. Entries of the same instant have no order among themselves.
func (s *Stage) inOrder(log []Activity, got, want []string) {
	s.Helper()
	for i := range log[1:] {
		s.That(!log[i].At.Before(log[i+1].At), "%s stands before %s", log[i].Action, log[i+1].Action)
	}
	slices.Sort(got)
	slices.Sort(want)
	s.That(slices.Equal(got, want), "the log has\n%v\nwant\n%v", got, want)
}

func (s *Stage) noSecretIn(log []Activity, secrets ...string) {
	s.Helper()
	text, err := json.Marshal(log)
	s.OK(err)
	for _, secret := range secrets {
		s.That(!strings.Contains(string(text), secret), "the log holds a secret")
	}
}
