package spec

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
)

const day = 24 * time.Hour

var retaining = []Scenario{
	{Name: "a backup is kept as the plan says, the last one for longer", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		for plan, days := range map[string]int{"pro": 14, "business": 30} {
			ada := s.Customer(plan)
			made := ada.Creates("orders")
			backup := ada.FinishesBackup(made.ID)
			listed := ada.ListsBackups(made.ID)[0]
			kept := listed.ExpiresAt.Sub(listed.CreatedAt)
			s.That(kept == time.Duration(days)*day, "%s keeps it for %s", plan, kept)

			s.OK(s.Clock.Advance(time.Duration(days)*day - time.Hour))
			ada.Downloads(made.ID, backup)
			last := ada.FinishesBackup(made.ID)
			s.OK(s.Clock.Advance(2 * time.Hour))
			s.Eventually("the backup is gone", func() bool { return len(ada.ListsBackups(made.ID)) == 1 })
			s.Refused(refusal(ada.DownloadBackup(made.ID, backup)), "BACKUP_NOT_FOUND")
			log := ada.ReadsActivity(made.ID)
			s.That(log[0].Action == "backup.expired" && log[0].Actor == "system", "the log says %+v", log[0])

			s.OK(s.Clock.Advance(time.Duration(days) * day))
			list := ada.ListsBackups(made.ID)
			s.That(len(list) == 1 && list[0].ExpiresAt == nil, "the last one is listed as %+v", list)
			ada.Downloads(made.ID, last)
		}
	}},
}

var scheduling = []Scenario{
	{Name: "a daily backup is taken every day, at the same time", Needs: []Ability{MovesTime}, Play: func(s *Stage) {
		ada := s.Customer("pro")
		made := ada.CreatesAs(NewDatabase{Name: s.Name("shop"), DisplayName: "Shop", ScheduledBackup: "daily"})
		for range 3 * 24 {
			s.OK(s.Clock.Advance(time.Hour))
			s.followsAll(ada, made.ID)
		}
		list := ada.ListsBackups(made.ID)
		s.That(len(list) == 3, "%d backups were taken in three days", len(list))
		for i, b := range list {
			s.That(b.Trigger == "scheduled" && b.VerifiedAt != nil, "it is listed as %+v", b)
			if i > 0 {
				between := list[i-1].CreatedAt.Sub(b.CreatedAt).Round(time.Hour) // it is looked at every hour
				s.That(between == day, "%s lie between two backups", between)
			}
		}
		log := ada.ReadsActivity(made.ID)
		ended := slices.ContainsFunc(log, func(e wire.Activity) bool { // it may have begun at the same time, by this clock
			return e.At.Equal(log[0].At) && e.Action == "backup.finished" && e.Actor == "system"
		})
		s.That(ended, "the log says %+v", log[0])
	}},
}

// followsAll waits for the end of every operation of a database.
func (s *Stage) followsAll(c *Customer, of id.DatabaseID) {
	s.Helper()
	for _, o := range c.ListsOperations(of) {
		if !o.Status.Final() {
			c.Follows(o)
		}
	}
}
