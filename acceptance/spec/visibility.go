package spec

import "slices"

// nobodysID is the ID of nothing.
const nobodysID = "00000000-0000-4000-8000-000000000000"

var seeing = []Scenario{
	{Name: "a full-access key sees every database of its account, oldest first, and no other", Play: func(s *Stage) {
		ada, bob := s.Customer("pro"), s.Customer("pro")
		one := ada.Creates("one")
		s.Pass(glance)
		two := ada.Creates("two")
		bob.Creates("other")
		s.That(slices.Equal(ada.SeesAll(), []string{one.ID, two.ID}), "ada sees %v", ada.SeesAll())
	}},
	{Name: "a key for selected databases sees these and makes none", Play: func(s *Stage) {
		ada := s.Customer("pro")
		one, two := ada.Creates("one"), ada.Creates("two")
		ci := s.WithKey(ada.Account, two.ID)

		s.That(slices.Equal(ci.SeesAll(), []string{two.ID}), "the key sees %v", ci.SeesAll())
		s.That(ci.Sees(two.ID).Name == two.Name, "it sees another database")
		_, err := ci.Database(one.ID)
		s.Refused(err, "DATABASE_NOT_FOUND")
		_, err = ci.CreateDatabase(NewDatabase{Name: s.Name("three"), DisplayName: "D"})
		s.Refused(err, "KEY_SCOPE_DENIED")
	}},
	{Name: "what belongs to others is as if it did not exist", Play: func(s *Stage) {
		ada, mallory := s.Customer("pro"), s.Customer("pro")
		made := ada.Creates("orders")
		backup := ada.FinishesBackup(made.ID)
		entry := ada.Allows(made.ID, "127.0.0.0/8")
		mine := mallory.Creates("mine")

		for what, err := range s.tryAll(mallory, made.ID, backup.Filename, entry.ID) {
			s.Log(what)
			s.Refused(err, "DATABASE_NOT_FOUND")
		}
		s.Refused(mallory.RemoveFromAllowlist(mine.ID, entry.ID), "ALLOWLIST_ENTRY_NOT_FOUND")
		_, err := mallory.DownloadBackup(mine.ID, backup.Filename)
		s.Refused(err, "BACKUP_NOT_FOUND")

		work := ada.ListsBackups(made.ID)[0].OperationID
		for _, id := range []string{work, nobodysID} {
			_, err := mallory.Operation(id)
			s.Refused(err, "OPERATION_NOT_FOUND")
			_, err = mallory.CancelOperation(id)
			s.Refused(err, "OPERATION_NOT_FOUND")
		}
		s.That(ada.Sees(made.ID).Status == "active", "mallory stopped it")
	}},
}

// tryAll does everything that there is to do with one database.
func (s *Stage) tryAll(c *Customer, id, filename, entry string) map[string]error {
	errs := map[string]error{}
	_, errs["read"] = c.Database(id)
	_, errs["label"] = c.SetEnvironment(id, Text("other"))
	_, errs["stop"] = c.SetLifecycle(id, "stop")
	_, errs["read the allowlist"] = c.Allowlist(id)
	_, errs["allow a network"] = c.AddToAllowlist(id, "10.0.0.0/8", "")
	errs["take a network off"] = c.RemoveFromAllowlist(id, entry)
	_, errs["list backups"] = c.Backups(id, Page{})
	_, errs["start a backup"] = c.StartBackup(id)
	_, errs["download a backup"] = c.DownloadBackup(id, filename)
	errs["delete a backup"] = c.DeleteBackup(id, filename)
	_, errs["list operations"] = c.Operations(id, Page{})
	_, errs["read the activity log"] = c.API.Activity(id, Page{})
	return errs
}
