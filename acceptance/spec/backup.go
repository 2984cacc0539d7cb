package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
)

var backupName = regexp.MustCompile(`^\d{8}_\d{6}\.sql\.gz$`)

var backingUp = []Scenario{
	{Name: "a backup is started, followed, listed, downloaded and restored", Play: func(s *Stage) {
		ada, made := s.Owner()
		notes := []string{"first", "it's 5 o'clock", `back\slash`, "ünï\tcode"}
		s.OK(s.Connects(made.Login()).Write(notes...))

		started := ada.BacksUp(made.ID)
		s.That(started.Type == "backup" && started.Status == "queued" && started.Stage == "queued" && started.Progress == 0 &&
			started.DatabaseID == made.ID, "it began as %+v", started)
		done := ada.Follows(started)
		s.That(done.Status == "succeeded" && done.Progress == 100 && done.Error == nil && done.FinishedAt != nil &&
			done.StartedAt != nil, "it ended as %+v (%+v)", done, done.Error)

		s.restores(ada, made, done.ID, notes)
	}},
	{Name: "daily backups are chosen and left off again", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.That(made.ScheduledBackup == "none", "the stage's default is %s", made.ScheduledBackup)
		for _, policy := range []database.Schedule{"daily", "daily", "none"} {
			chosen := must(ada.Backups.SetPolicy(ctx, made.ID, wire.SetBackupPolicy{ScheduledBackup: policy}))(s)
			s.That(chosen == wire.BackupPolicy{ID: made.ID, ScheduledBackup: policy}, "the answer is %+v", chosen)
			s.That(ada.Sees(made.ID).ScheduledBackup == policy, "the record says %s", ada.Sees(made.ID).ScheduledBackup)
		}
		_, err := ada.Backups.SetPolicy(ctx, made.ID, wire.SetBackupPolicy{ScheduledBackup: "hourly"})
		s.Refused(err, "VALIDATION_ERROR", "scheduledBackup")
		s.That(ada.Sees(made.ID).ScheduledBackup == "none", "a refused choice has changed it")
	}},
	{Name: "a deleted backup is gone", Play: func(s *Stage) {
		ada, made := s.Owner()
		backup := ada.FinishesBackup(made.ID)
		s.OK(ada.Backups.Delete(ctx, made.ID, backup))
		s.That(len(ada.ListsBackups(made.ID)) == 0, "it is still listed")
		s.Refused(refusal(ada.DownloadBackup(made.ID, backup)), "BACKUP_NOT_FOUND")
		s.Refused(ada.Backups.Delete(ctx, made.ID, backup), "BACKUP_NOT_FOUND")
	}},
	{Name: "backups of one second have names of their own, newest first", Play: func(s *Stage) {
		ada, made := s.Owner()
		var names []backup.Filename
		for range 3 {
			names = append(names, ada.FinishesBackup(made.ID))
		}
		var listed []backup.Filename
		for _, b := range ada.ListsBackups(made.ID) {
			listed = append(listed, b.Filename)
		}
		slices.Sort(names)
		slices.Reverse(names)
		s.That(len(slices.Compact(slices.Clone(names))) == 3, "two have one name: %v", names)
		s.That(slices.Equal(listed, names), "the list is %v; want %v", listed, names)
	}},
	{Name: "a stopped database can be backed up", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Connects(made.Login()).Write("kept"))
		ada.Sets(made.ID, "stop", "stopped")
		backup := ada.FinishesBackup(made.ID)
		s.holds(ada.Downloads(made.ID, backup), "kept")
		s.ShutOut(made.Login())
	}},
	{Name: "what is written during a backup belongs to the next one", Play: func(s *Stage) {
		ada, made := s.Owner()
		session := s.Connects(made.Login())
		s.OK(session.Write("before"))
		first := ada.FinishesBackup(made.ID)
		s.OK(session.Write("after"))
		second := ada.FinishesBackup(made.ID)
		s.holds(ada.Downloads(made.ID, first), "before")
		s.holds(ada.Downloads(made.ID, second), "before", "after")
	}},
	{Name: "a backup that does not come back equal names what is wrong and the way out, and its file stays", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.OK(s.Spoil(made))
		done := ada.Follows(ada.BacksUp(made.ID))
		const out = "ALTER EXTENSION citext DROP TABLE public.orders"
		s.That(done.Status == "failed" && done.Error != nil && done.Error.Code == "BACKUP_NOT_VERIFIED" &&
			strings.Contains(done.Error.Message, out), "it ended as %s: %+v", done.Status, done.Error)

		list := ada.ListsBackups(made.ID)
		s.That(len(list) == 1 && list[0].OperationID == done.ID && list[0].VerifiedAt == nil, "the list is %+v", list)
		s.That(len(ada.Downloads(made.ID, list[0].Filename)) > 0, "the file is empty")
		s.OK(ada.Backups.Delete(ctx, made.ID, list[0].Filename))
	}},
	{Name: "a backup that rots where it is stored is found out, told and replaced", Play: func(s *Stage) {
		ada, made := s.Owner()
		s.rotsAndIsReplaced(ada, made)
	}},
	{Name: "a backup that rots is an event", Needs: []Ability{HasReceivers}, Play: func(s *Stage) {
		ada, made := s.Owner()
		hook := ada.Hooks(s.receiver(), "")
		rotten := s.rotsAndIsReplaced(ada, made)
		told := map[event.Name]event.Payload{}
		for _, request := range s.Hears(hook, 3) {
			e := s.reads(request)
			told[e.Event] = e
		}
		e, found := told["backup.damaged"]
		s.That(found && e.Data.OperationID == rotten.OperationID && e.ID != rotten.OperationID && e.Data.DatabaseID == made.ID &&
			e.Data.Error != nil && e.Data.Error.Code == "BACKUP_NOT_VERIFIED", "%+v", told)
	}},
}

// rotsAndIsReplaced has a backup of a database rot, waits until there is another one, and deletes it.
func (s *Stage) rotsAndIsReplaced(c *Customer, made Created) (rotten wire.Backup) {
	s.Helper()
	file := c.FinishesBackup(made.ID)
	s.OK(s.Rot(made, file))
	s.Eventually("it is replaced", func() bool { return len(c.ListsBackups(made.ID)) == 2 })
	list := c.ListsBackups(made.ID)
	s.That(list[0].Trigger == "scheduled" && list[0].VerifiedAt != nil && list[0].DamagedAt == nil, "the new one is %+v", list[0])
	rotten = list[1]
	s.That(rotten.Filename == file && rotten.VerifiedAt == nil && rotten.DamagedAt != nil, "the old one is %+v", rotten)
	s.Refused(refusal(c.Certificates.Get(ctx, made.ID, file)), "BACKUP_NOT_VERIFIED")
	told := slices.ContainsFunc(c.ReadsActivity(made.ID), func(e wire.Activity) bool {
		return e.Action == "backup.damaged" && e.Actor == "system" && e.Details["filename"] == string(file)
	})
	s.That(told, "the log says %+v", c.ReadsActivity(made.ID))
	s.OK(c.Backups.Delete(ctx, made.ID, file))
	return rotten
}

// restores checks the list entry of a backup, downloads the file and finds the notes in it.
func (s *Stage) restores(c *Customer, made Created, operation id.OperationID, notes []string) {
	s.Helper()
	list := c.ListsBackups(made.ID)
	s.That(len(list) == 1, "%d backups are listed", len(list))
	b := list[0]
	s.That(backupName.MatchString(string(b.Filename)) && b.OperationID == operation && b.Trigger == "manual" &&
		b.Format == "sql.gz" && b.VerifiedAt != nil && b.ExpiresAt != nil && b.RoleManifest, "it is listed as %+v", b)

	file := c.Downloads(made.ID, b.Filename)
	sum := sha256.Sum256(file)
	s.That(int64(len(file)) == b.SizeBytes && hex.EncodeToString(sum[:]) == b.ChecksumSHA256,
		"%d bytes with the checksum %x came; the list says %+v", len(file), sum, b)
	s.holds(file, notes...)
}

// holds restores a backup file elsewhere and finds exactly these notes.
func (s *Stage) holds(file []byte, notes ...string) {
	s.Helper()
	found := must(s.Restore(file))(s)
	slices.Sort(found)
	want := slices.Sorted(slices.Values(notes))
	s.That(slices.Equal(found, want), "the file holds %q; want %q", found, want)
}
