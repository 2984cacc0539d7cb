package deletion

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

var start = time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)

// whole is the scene of a database that can be recovered, one hour after its deletion.
func whole() Scene {
	file, verified := backup.FilenameAt(start), start
	access := Access{Members: 2, Keys: 3, Allowlist: 4}
	return Scene{
		Database: database.Record{ID: "db", Status: database.Deleted},
		Tombstone: Tombstone{
			DatabaseID: "db", OperationID: "op", StatusBefore: database.Active, DeletedAt: start, PurgeAfter: start.Add(DefaultWindow),
			Filename: file, ChecksumSHA256: "sum", Access: access,
		},
		Backup: &backup.Backup{
			DatabaseID: "db", OperationID: "op", Filename: file, ChecksumSHA256: "sum", Trigger: backup.Deletion, VerifiedAt: &verified,
		},
		Found: access,
	}
}

// Each cause by itself makes a deleted database unavailable. What is wrong with its backup forbids the download, too; what is
// wrong with its access snapshot does not.
func TestRecoveryStatus(t *testing.T) {
	cases := map[string]struct {
		change       func(s *Scene)
		want         RecoveryStatus
		downloadable bool
	}{
		"whole":                         {func(*Scene) {}, Recoverable, true},
		"deleted without a backup":      {unbound, Unavailable, false},
		"no backup":                     {func(s *Scene) { s.Backup = nil }, Unavailable, false},
		"a backup of another database":  {func(s *Scene) { s.Backup.DatabaseID = "other" }, Unavailable, false},
		"a tombstone of another":        {func(s *Scene) { s.Tombstone.DatabaseID = "other" }, Unavailable, false},
		"a backup of another operation": {func(s *Scene) { s.Backup.OperationID = "other" }, Unavailable, false},
		"another file":                  {func(s *Scene) { s.Backup.Filename = "another" }, Unavailable, false},
		"another checksum":              {func(s *Scene) { s.Backup.ChecksumSHA256 = "other" }, Unavailable, false},
		"a manual backup":               {func(s *Scene) { s.Backup.Trigger = backup.Manual }, Unavailable, false},
		"a retention":                   {func(s *Scene) { s.Backup.ExpiresAt = new(start.Add(time.Hour)) }, Unavailable, false},
		"not verified":                  {func(s *Scene) { s.Backup.VerifiedAt = nil }, Unavailable, false},
		"damaged since": {func(s *Scene) {
			s.Backup.VerifiedAt, s.Backup.DamagedAt = nil, new(start)
		}, Recoverable, false},
		"a file that is to go": {func(s *Scene) { s.Backup.DeletingAt = new(start) }, Unavailable, false},
		"a member less":        {func(s *Scene) { s.Found.Members-- }, Unavailable, true},
		"a key less":           {func(s *Scene) { s.Found.Keys-- }, Unavailable, true},
		"an entry less":        {func(s *Scene) { s.Found.Allowlist-- }, Unavailable, true},
		"an entry more":        {func(s *Scene) { s.Found.Allowlist++ }, Unavailable, true},
		"its purge has begun":  {func(s *Scene) { s.Database.Status = database.Purging }, Expired, false},
		"its time is over":     {func(s *Scene) { s.Tombstone.PurgeAfter = start.Add(time.Hour) }, Expired, false},
		"its last moment":      {func(s *Scene) { s.Tombstone.PurgeAfter = start.Add(time.Hour + 1) }, Recoverable, true},
		"incomplete and over": {func(s *Scene) {
			s.Backup, s.Tombstone.PurgeAfter = nil, start
		}, Expired, false},
	}
	now := start.Add(time.Hour)
	for name, c := range cases {
		s := whole()
		c.change(&s)
		if got := s.RecoveryStatus(now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		_, err := s.Downloadable(now)
		if (err == nil) != c.downloadable || err != nil && !fault.Has(err, fault.DeletionBackupNotAvailable) {
			t.Errorf("%s: the download: %v", name, err)
		}
		err = s.AdmitsRecovery(now)
		if (err == nil) != (c.want == Recoverable) || err != nil && !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("%s: the recovery: %v", name, err)
		}
	}
	for _, status := range database.Active.Values() {
		s := whole()
		s.Database.Status = status
		if _, err := s.Downloadable(now); !fault.Has(err, fault.DeletionBackupNotAvailable) {
			t.Errorf("the download of one that is %s: %v", status, err)
		}
		if err := s.AdmitsRecovery(now); !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("the recovery of one that is %s: %v", status, err)
		}
	}
}

func unbound(s *Scene) { s.Backup, s.Tombstone.Filename, s.Tombstone.ChecksumSHA256 = nil, "", "" }

func TestReopen(t *testing.T) {
	for _, was := range []database.Status{database.Active, database.Stopped, database.Error} {
		for _, now := range []database.Status{database.Deleting, database.Deleted, database.Error, database.Purging} {
			if got, err := Reopen(now, was); err != nil || got != was {
				t.Errorf("from %s to %s: %s, %v", now, was, got, err)
			}
		}
	}
}

func TestCheckWindow(t *testing.T) {
	for d, ok := range map[time.Duration]bool{
		0: false, LeastWindow - 1: false, LeastWindow: true, DefaultWindow: true, MostWindow: true, MostWindow + 1: false,
	} {
		if err := CheckWindow(d); (err == nil) != ok {
			t.Errorf("%s: %v", d, err)
		}
	}
}
