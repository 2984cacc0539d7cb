package spec

import (
	"slices"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// nobodysID is the ID of nothing.
const nobodysID = "00000000-0000-4000-8000-000000000000"

var seeing = []Scenario{
	{Name: "a full-access key sees every database of its account, oldest first, and no other", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		one := ada.Creates("one")
		s.Pass(glance)
		two := ada.Creates("two")
		bob.Creates("other")
		s.That(slices.Equal(ada.SeesAll(), []id.DatabaseID{one.ID, two.ID}), "ada sees %v", ada.SeesAll())
	}},
	{Name: "a key for selected databases sees these and makes none", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, two := ada.Creates("one"), ada.Creates("two")
		ci := s.WithKey(ada.Account, two.ID)

		s.That(slices.Equal(ci.SeesAll(), []id.DatabaseID{two.ID}), "the key sees %v", ci.SeesAll())
		s.That(ci.Sees(two.ID).Name == two.Name, "it sees another database")
		s.Refused(refusal(ci.Databases.Get(ctx, one.ID)), "DATABASE_NOT_FOUND")
		s.Refused(refusal(ci.CreateDatabase(NewDatabase{Name: s.Name("three"), DisplayName: "D"})), "KEY_SCOPE_DENIED")
	}},
	{Name: "what belongs to others is as if it did not exist", Play: func(s *Stage) {
		ada, mallory := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		backup := ada.FinishesBackup(made.ID)
		entry := ada.Allows(made.ID, "127.0.0.0/8")
		mine := mallory.Creates("mine")

		for what, err := range s.tryAll(mallory, made.ID, backup, entry.ID) {
			s.Log(what)
			s.Refused(err, "DATABASE_NOT_FOUND")
		}
		s.Refused(mallory.Allowlist.Remove(ctx, mine.ID, entry.ID), "ALLOWLIST_ENTRY_NOT_FOUND")
		s.Refused(refusal(mallory.DownloadBackup(mine.ID, backup)), "BACKUP_NOT_FOUND")

		work := ada.ListsBackups(made.ID)[0].OperationID
		for _, o := range []id.OperationID{work, nobodysID} {
			s.Refused(refusal(mallory.Operations.Get(ctx, o)), "OPERATION_NOT_FOUND")
			s.Refused(refusal(mallory.Operations.Cancel(ctx, o)), "OPERATION_NOT_FOUND")
		}
		s.That(ada.Sees(made.ID).Status == "active", "mallory stopped it")
	}},
}

// tryAll does everything that there is to do with one database.
func (s *Stage) tryAll(c *Customer, of id.DatabaseID, file backup.Filename, entry id.AllowlistEntryID) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = c.Databases.Get(ctx, of)
	_, errs["label"] = c.SetEnvironment(of, new(database.Other))
	_, errs["stop"] = c.SetLifecycle(of, "stop")
	_, errs["read the allowlist"] = c.Allowlist.List(ctx, of)
	_, errs["allow a network"] = c.AddToAllowlist(of, "10.0.0.0/8", "")
	errs["take a network off"] = c.Allowlist.Remove(ctx, of, entry)
	_, errs["list backups"] = c.Backups.List(ctx, of, apiclient.Page{})
	_, errs["start a backup"] = c.Backups.Start(ctx, of)
	_, errs["download a backup"] = c.DownloadBackup(of, file)
	errs["delete a backup"] = c.Backups.Delete(ctx, of, file)
	_, errs["list operations"] = c.Operations.List(ctx, of, apiclient.Page{})
	_, errs["read the activity log"] = c.Activity.List(ctx, of, apiclient.Page{})
	return errs
}
