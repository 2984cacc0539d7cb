package spec

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/database"
)

var recording = []Scenario{
	{Name: "the activity log tells who did what, newest first, and no secret", Play: func(s *Stage) {
		ada, made := s.Owner()
		entry := ada.Allows(made.ID, "127.0.0.0/8")
		s.OK(ada.Allowlist.Remove(ctx, made.ID, entry.ID))
		for _, action := range []database.Event{"stop", "start", "restart"} {
			must(ada.SetLifecycle(made.ID, action))(s)
		}
		backup := ada.FinishesBackup(made.ID)
		ada.Downloads(made.ID, backup)
		s.OK(ada.Backups.Delete(ctx, made.ID, backup))

		log := ada.ReadsActivity(made.ID)
		var actions []audit.Action
		for _, e := range log {
			actions = append(actions, e.Action)
			s.That(ada.did(e), "%s was done by %s, %+v", e.Action, e.Actor, e.Person)
			s.That(e.ID != "" && !e.At.IsZero(), "an entry without ID or time: %+v", e)
		}
		want := []audit.Action{
			"backup.deleted", "backup.downloaded", "backup.finished", "backup.requested", "database.restarted",
			"database.started", "database.stopped", "allowlist.removed", "allowlist.added", "database.created",
		}
		s.inOrder(log, actions, want)
		s.noSecretIn(log, made.Password, ada.Key.Text)
	}},
	{Name: "the activity log tells which of several people did what, whoever finished it and whatever became of the key",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			bob := ada.member(made, "admin")
			bob.FinishesBackup(made.ID)
			bob.Rotates(made, bob.AddsRole(made, "Reports", "read_only"), "rotate-1")
			must(s.Operator.ReplaceKey(bob.Key))(s)
			log := ada.ReadsActivity(made.ID)
			s.That(len(log) == 6, "the log is %+v", log)
			for _, e := range log {
				who := bob
				if e.Action == audit.DatabaseCreated || e.Action == audit.MemberAdded {
					who = ada
				}
				s.That(who.did(e) && e.Person.Name == "Somebody", "%s was done by %s, %+v", e.Action, e.Actor, e.Person)
			}
		}},
	{Name: "the activity log shows the mail addresses of people to the owner alone", Play: func(s *Stage) {
		ada, made := s.Owner()
		bob := ada.member(made, "admin")
		for _, c := range []struct {
			who *Customer
			has string
		}{{ada, bob.Account.Email}, {bob, ""}} {
			log := c.who.ReadsActivity(made.ID)
			i := slices.IndexFunc(log, func(e wire.Activity) bool { return e.Action == audit.MemberAdded })
			s.That(i >= 0 && log[i].Details["email"] == c.has && log[i].Details["role"] == "admin", "the log is %+v", log)
		}
	}},
	{Name: "what one database's log says concerns no other database", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, other := ada.Creates("one"), ada.Creates("other")
		ada.Sets(one.ID, "stop", "stopped")
		log := ada.ReadsActivity(other.ID)
		s.That(len(log) == 1 && log[0].Action == "database.created", "the other's log has %+v", log)
	}},
}

// did reports whether an entry names the customer's key and its person.
func (c *Customer) did(e wire.Activity) bool {
	return e.Actor == "key:pgh_"+string(c.Key.ID) && e.Person != nil && e.Person.UserID == c.Account.UserID
}

// inOrder compares what happened. Entries of the same instant have no order among themselves.
func (s *Stage) inOrder(log []wire.Activity, got, want []audit.Action) {
	s.Helper()
	for i := range log[1:] {
		s.That(!log[i].At.Before(log[i+1].At), "%s stands before %s", log[i].Action, log[i+1].Action)
	}
	slices.Sort(got)
	slices.Sort(want)
	s.That(slices.Equal(got, want), "the log has\n%v\nwant\n%v", got, want)
}

// only is the one entry with an action. Entries of the same moment stand in any order.
func (s *Stage) only(log []wire.Activity, action audit.Action) (found wire.Activity) {
	s.Helper()
	n := 0
	for _, e := range log {
		if e.Action == action {
			found, n = e, n+1
		}
	}
	s.That(n == 1, "%d entries say %s: %+v", n, action, log)
	return found
}

func (s *Stage) noSecretIn(shown any, secrets ...string) {
	s.Helper()
	text := must(json.Marshal(shown))(s)
	for _, secret := range secrets {
		s.That(!strings.Contains(string(text), secret), "what is shown holds a secret")
	}
}
