package spec

import (
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// A new database takes less than the quota, and what the stories grow is in steps of a megabyte.
const (
	bytesQuota   = 20_000_000
	overQuota    = bytesQuota + 1_000_000
	farOverQuota = 30_000_000
)

// fullWithin is the promise: so soon is a database that exceeds its quota read-only for whoever connects.
const fullWithin = 15 * time.Second

var limitingBytes = []Scenario{
	{Name: "far above its quota a database is closed until the operator opens it, and goes back by itself", Play: func(s *Stage) {
		ada, made := s.limited(bytesQuota)
		s.That(ada.Sees(made.ID).Storage.QuotaBytes == bytesQuota, "it is %+v", ada.Sees(made.ID).Storage)
		s.grows(ada, made, farOverQuota, database.StorageClosed)
		// It may have been measured, and closed, while it grew.
		s.That(ada.Sees(made.ID).SizeBytes > bytesQuota/100*120, "it has %d bytes", ada.Sees(made.ID).SizeBytes)
		s.Eventually("nobody gets in", func() bool { return !s.getsIn(made.Login()) })
		for _, step := range []struct {
			action database.Event
			status database.Status
		}{{"restart", "active"}, {"stop", "stopped"}, {"start", "active"}} {
			ada.Sets(made.ID, step.action, step.status)
			s.ShutOut(made.Login())
		}
		s.stores(ada, made.ID, database.StorageClosed)

		s.OK(s.Operator.OpenDatabase(made.ID, "they delete"))
		s.stores(ada, made.ID, database.StorageFull)
		s.Eventually("they get in", func() bool { return s.getsIn(made.Login()) })
		s.OK(s.OnServer.Shrink(made))
		s.stores(ada, made.ID, database.StorageOK)
		s.That(slices.ContainsFunc(ada.ReadsActivity(made.ID), func(e wire.Activity) bool {
			return e.Actor == "operator" && e.Action == "storage.full" && e.Details["reason"] == "they delete"
		}), "the log is %+v", ada.ReadsActivity(made.ID))
	}},
	{Name: "raising the quota opens a closed database", Play: func(s *Stage) {
		ada, made := s.limited(bytesQuota)
		s.grows(ada, made, farOverQuota, database.StorageClosed)
		s.Eventually("nobody gets in", func() bool { return !s.getsIn(made.Login()) })
		s.OK(s.Operator.SetBytes(ada.Account, 2*farOverQuota, 1<<30))
		s.stores(ada, made.ID, database.StorageOK)
		s.Eventually("they get in", func() bool { return s.getsIn(made.Login()) })
	}},
	{Name: "a full database is read-only by default for every login and entry, and what overrides it can delete",
		Needs: []Ability{RunsRealSQL}, Play: func(s *Stage) {
			ada, made := s.limited(bytesQuota)
			logins := []Login{made.Login(), ada.RevealsLogin(made, "runtime").LogIn(), ada.RevealsLogin(made, "readonly").LogIn()}
			idle := made.Login()
			idle.Database += ".transaction"
			held := must(s.SQL.Talk(idle))(s)
			defer held.Close()
			must(held.Say("SELECT 1"))(s)

			s.OK(s.OnServer.Grow(made, overQuota))
			exceeds := time.Now()
			for _, l := range logins {
				s.readOnly(l, "on")
			}
			s.That(time.Since(exceeds) <= fullWithin, "it was read-only after %s", time.Since(exceeds))
			s.stores(ada, made.ID, database.StorageFull)
			_, err := s.SQL.Run(made.Login(), "CREATE TABLE more ()")
			s.That(s.SQL.State(err) == "25006", "it is not refused: %v", err)
			s.ends(held, "on")

			s.OK(s.OnServer.Shrink(made))
			s.stores(ada, made.ID, database.StorageOK)
			for _, l := range logins {
				s.readOnly(l, "off")
			}
			must(s.SQL.Run(made.Login(), "CREATE TABLE more ()"))(s)
		}},
	{Name: "a backup over the quota is refused or fails, and works again with room", Play: func(s *Stage) {
		ada, made := s.limited(1 << 30)
		s.OK(s.Operator.SetBytes(ada.Account, 1<<30, 10))
		done := ada.Follows(ada.BacksUp(made.ID))
		s.That(done.Status == "failed" && done.Error.Code == "BACKUP_STORAGE_FULL" && strings.Contains(done.Error.Message, "quota"),
			"it ended as %s: %+v", done.Status, done.Error)
		s.That(len(ada.ListsBackups(made.ID)) == 0, "a file is listed")

		s.OK(s.Operator.SetBytes(ada.Account, 1<<30, 1<<30))
		file := ada.FinishesBackup(made.ID)
		s.OK(s.Operator.SetBytes(ada.Account, 1<<30, ada.ListsBackups(made.ID)[0].SizeBytes))
		r := s.Refused(refusal(ada.Backups.Start(ctx, made.ID)), "BACKUP_STORAGE_FULL")
		s.That(strings.Contains(r.Message, "quota"), "which storage is full? %s", r.Message)
		s.OK(ada.Backups.Delete(ctx, made.ID, file))
		ada.BacksUp(made.ID)
	}},
}

// limited is a customer whose databases may take so many bytes, with one of them.
func (s *Stage) limited(bytes int64) (*Customer, Created) {
	s.Helper()
	ada, made := s.Owner()
	s.OK(s.Operator.SetBytes(ada.Account, bytes, 1<<30))
	return ada, made
}

func (s *Stage) getsIn(l Login) bool {
	session, err := s.Connect(l)
	if err == nil {
		session.Close()
	}
	return err == nil
}

// grows makes a database larger, and waits until the record says what follows.
func (s *Stage) grows(c *Customer, made Created, bytes int64, want database.StorageStatus) {
	s.Helper()
	s.OK(s.OnServer.Grow(made, bytes))
	s.stores(c, made.ID, want)
}

func (s *Stage) stores(c *Customer, of id.DatabaseID, want database.StorageStatus) {
	s.Helper()
	s.Eventually("its storage is "+string(want), func() bool { return c.Sees(of).Storage.Status == want })
}

// readOnly waits until what a login begins through both entries is read-only by default, or not.
func (s *Stage) readOnly(l Login, want string) {
	s.Helper()
	for _, entry := range []string{"", ".transaction"} {
		through := l
		through.Database += entry
		s.Eventually(through.Database+" of "+l.Username+" has read-only "+want, func() bool {
			got, err := s.SQL.Run(through, "SHOW default_transaction_read_only")
			return err == nil && got[0] == want
		})
	}
}

// ends waits until a connection that was idle across the change has ended, or its transactions are read-only too.
func (s *Stage) ends(held Talk, want string) {
	s.Helper()
	s.Eventually("an idle client is ended, or has the setting", func() bool {
		got, err := held.Say("SHOW default_transaction_read_only")
		return err != nil || got[0] == want
	})
}
