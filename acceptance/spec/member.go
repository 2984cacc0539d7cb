package spec

import (
	"maps"
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// rights is who may do what with a database of somebody else.
var rights = map[account.Standing]map[string]bool{
	"admin":     {"see": true, "back up": true, "configure": true},
	"developer": {"see": true, "back up": true},
	"viewer":    {"see": true},
}

var sharing = []Scenario{
	{Name: "a member does with a selected-database key what the role allows", Play: func(s *Stage) {
		ada, made := s.Owner()
		file := ada.FinishesBackup(made.ID)
		for _, role := range slices.Sorted(maps.Keys(rights)) {
			bob := s.Customer("pro")
			s.OK(s.Operator.MakeMember(made.ID, bob.Account.UserID, role))
			s.useRights(s.WithKey(bob.Account, made.ID), made, file, role)
		}
	}},
	{Name: "a membership adds nothing to a full-access key, and a key nothing without membership", Play: func(s *Stage) {
		ada, bob, eve := s.Customer("pro"), s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		s.OK(s.Operator.MakeMember(made.ID, bob.Account.UserID, "admin"))
		s.Refused(refusal(bob.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
		s.That(len(bob.SeesAll()) == 0, "bob sees %v", bob.SeesAll())

		bound := s.WithKey(eve.Account, made.ID)
		s.Refused(refusal(bound.Databases.Get(ctx, made.ID)), "DATABASE_NOT_FOUND")
		s.That(len(bound.SeesAll()) == 0, "eve sees %v", bound.SeesAll())
	}},
}

// useRights does everything that a member could do, and wants exactly what the role allows.
func (s *Stage) useRights(bob *Customer, made Created, file backup.Filename, role account.Standing) {
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
	_, err := bob.Databases.Get(ctx, made.ID)
	want("see", "read the database", err)
	want("see", "find it in the list", s.lists(bob, made.ID))
	_, err = bob.Allowlist.List(ctx, made.ID)
	want("see", "read the allowlist", err)
	_, err = bob.DownloadBackup(made.ID, file)
	want("see", "download a backup", err)
	_, err = bob.Activity.List(ctx, made.ID, apiclient.Page{})
	want("see", "read the activity log", err)

	started, err := bob.Backups.Start(ctx, made.ID)
	want("back up", "start a backup", err)
	if err == nil {
		done := bob.Follows(started.Operation)
		want("back up", "delete a backup", bob.Backups.Delete(ctx, made.ID, s.fileOf(bob, made.ID, done.ID)))
	} else {
		want("back up", "delete a backup", bob.Backups.Delete(ctx, made.ID, file))
	}

	_, err = bob.SetEnvironment(made.ID, new(database.Staging))
	want("configure", "change the label", err)
	_, err = bob.SetLifecycle(made.ID, "restart")
	want("configure", "restart the database", err)
	entry, err := bob.AddToAllowlist(made.ID, "127.0.0.0/8", string(role))
	want("configure", "allow a network", err)
	if err == nil {
		want("configure", "take a network off", bob.Allowlist.Remove(ctx, made.ID, entry.ID))
	}
	s.Refused(refusal(bob.CreateDatabase(NewDatabase{Name: s.Name("own"), DisplayName: "D"})), "KEY_SCOPE_DENIED")
}

func (s *Stage) lists(c *Customer, of id.DatabaseID) error {
	s.Helper()
	s.That(slices.Equal(c.SeesAll(), []id.DatabaseID{of}), "the list is %v", c.SeesAll())
	return nil
}

func (s *Stage) fileOf(c *Customer, of id.DatabaseID, operation id.OperationID) backup.Filename {
	s.Helper()
	for _, b := range c.ListsBackups(of) {
		if b.OperationID == operation {
			return b.Filename
		}
	}
	s.Fatalf("operation %s left no backup", operation)
	return ""
}
