package spec

import (
	"maps"
	"slices"
)

// rights is who may do what with a database of somebody else.
var rights = map[string]map[string]bool{
	"admin":     {"see": true, "back up": true, "configure": true},
	"developer": {"see": true, "back up": true},
	"viewer":    {"see": true},
}

var sharing = []Scenario{
	{Name: "a member does with a selected-database key what the role allows", Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.Creates("orders")
		file := ada.FinishesBackup(made.ID).Filename
		for _, role := range slices.Sorted(maps.Keys(rights)) {
			bob := s.Customer("pro")
			s.OK(s.Operator.MakeMember(made.ID, bob.Account, role))
			s.useRights(s.WithKey(bob.Account, made.ID), made, file, role)
		}
	}},
	{Name: "a membership adds nothing to a full-access key, and a key nothing without membership", Play: func(s *Stage) {
		ada, bob, eve := s.Customer("pro"), s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		s.OK(s.Operator.MakeMember(made.ID, bob.Account, "admin"))
		_, err := bob.Database(made.ID)
		s.Refused(err, "DATABASE_NOT_FOUND")
		s.That(len(bob.SeesAll()) == 0, "bob sees %v", bob.SeesAll())

		bound := s.WithKey(eve.Account, made.ID)
		_, err = bound.Database(made.ID)
		s.Refused(err, "DATABASE_NOT_FOUND")
		s.That(len(bound.SeesAll()) == 0, "eve sees %v", bound.SeesAll())
	}},
}

// useRights does everything that a member could do, and wants exactly what the role allows.
func (s *Stage) useRights(bob *Customer, made Created, file, role string) {
	s.Helper()
	want := func(right, what string, err error) {
		s.Helper()
		s.Logf("a %s tries to %s", role, what)
		if rights[role][right] {
			s.OK(err)
			return
		}
		s.Refused(err, "FORBIDDEN")
	}
	_, err := bob.Database(made.ID)
	want("see", "read the database", err)
	want("see", "find it in the list", s.lists(bob, made.ID))
	_, err = bob.Allowlist(made.ID)
	want("see", "read the allowlist", err)
	_, err = bob.DownloadBackup(made.ID, file)
	want("see", "download a backup", err)
	_, err = bob.API.Activity(made.ID, Page{})
	want("see", "read the activity log", err)

	started, err := bob.StartBackup(made.ID)
	want("back up", "start a backup", err)
	if err == nil {
		done := bob.Follows(started)
		want("back up", "delete a backup", bob.DeleteBackup(made.ID, s.fileOf(bob, made.ID, done.ID)))
	} else {
		want("back up", "delete a backup", bob.DeleteBackup(made.ID, file))
	}

	_, err = bob.SetEnvironment(made.ID, Text("staging"))
	want("configure", "change the label", err)
	_, err = bob.SetLifecycle(made.ID, "restart")
	want("configure", "restart the database", err)
	entry, err := bob.AddToAllowlist(made.ID, "127.0.0.0/8", role)
	want("configure", "allow a network", err)
	if err == nil {
		want("configure", "take a network off", bob.RemoveFromAllowlist(made.ID, entry.ID))
	}
	_, err = bob.CreateDatabase(NewDatabase{Name: s.Name("own"), DisplayName: "D"})
	s.Refused(err, "KEY_SCOPE_DENIED")
}

func (s *Stage) lists(c *Customer, id string) error {
	s.Helper()
	s.That(slices.Equal(c.SeesAll(), []string{id}), "the list is %v", c.SeesAll())
	return nil
}

func (s *Stage) fileOf(c *Customer, id, operation string) string {
	s.Helper()
	for _, b := range c.ListsBackups(id) {
		if b.OperationID == operation {
			return b.Filename
		}
	}
	s.Fatalf("operation %s left no backup", operation)
	return ""
}
