package backup_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestFilenameShape(t *testing.T) {
	for name, valid := range map[string]bool{
		"20260301_120000.sql.gz":            true,
		"20240229_235959.sql.gz":            true,
		"00010101_000000.sql.gz":            true,
		"20260229_120000.sql.gz":            false, // no leap year
		"20260631_120000.sql.gz":            false,
		"20261301_120000.sql.gz":            false,
		"20260300_120000.sql.gz":            false,
		"20260301_240000.sql.gz":            false,
		"20260301_126000.sql.gz":            false,
		"20260301_120060.sql.gz":            false,
		"20260301_120000.SQL.gz":            false,
		"20260301_120000.sql.gz ":           false,
		"20260301_120000.sql":               false,
		"20260301-120000.sql.gz":            false,
		"2026030१_120000.sql.gz":            false,
		"+0260301_120000.sql.gz":            false,
		"":                                  false,
		"../20260301_120000.sql.gz/../../x": false,
		"20260301_120000.sql.gz\x00":        false,
	} {
		got, err := backup.ParseFilename(name)
		if valid != (err == nil) || (valid && string(got) != name) {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
		if !valid && !fault.Has(err, fault.InvalidBackupFilename) {
			t.Errorf("%q: %v is not INVALID_BACKUP_FILENAME", name, err)
		}
	}
}

func TestFilenameStandsForItsSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(rapid.Int64Range(0, 200_000_000_000).Draw(t, "unix"), 5).UTC()
		name := backup.FilenameAt(want.In(time.FixedZone("east", 5*3600)))
		parsed, err := backup.ParseFilename(string(name))
		if err != nil || !parsed.Time().Equal(want.Truncate(time.Second)) {
			t.Fatalf("%s from %s: %s, %v", name, want, parsed.Time(), err)
		}
	})
}

func TestNamesAreNeverGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var taken []backup.Filename
		for range rapid.IntRange(1, 30).Draw(t, "backups") {
			start := noon.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "second")) * time.Second)
			name := backup.FreeFilename(start, taken)
			if name.Time().Before(start) {
				t.Fatalf("%s is before its start %s", name, start)
			}
			for _, other := range taken {
				if other == name {
					t.Fatalf("%s given twice", name)
				}
			}
			taken = append(taken, name)
		}
	})
	if got := backup.FreeFilename(noon, []backup.Filename{backup.FilenameAt(noon)}); got != "20260301_120001.sql.gz" {
		t.Errorf("the later of two takes %s", got)
	}
}

func TestRetention(t *testing.T) {
	b := backup.Backup{Trigger: backup.Manual, ExpiresAt: backup.Expiry(backup.Manual, noon, 7)}
	if b.Expired(noon.AddDate(0, 0, 7).Add(-1)) || !b.Expired(noon.AddDate(0, 0, 7)) {
		t.Errorf("seven days end at %s", b.ExpiresAt)
	}
	b.Last = true
	if end := noon.AddDate(0, 0, 7); b.Expired(end) || b.Ends(end) != nil || b.Ends(end.Add(-1)) != b.ExpiresAt {
		t.Errorf("the last one ends at %v", b.Ends(end))
	}
	if backup.Expiry(backup.Deletion, noon, 7) != nil {
		t.Error("a deletion backup expires by itself")
	}
}

// Whatever backups there are, retention keeps one: the newest verified one, or where none is verified the newest. So the last
// verified backup does not expire before a newer verified one exists.
func TestOneOutlastsAllOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []backup.Backup
		for i := range rapid.IntRange(1, 8).Draw(t, "backups") {
			at := noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "created")) * time.Hour)
			b := backup.Backup{Filename: backup.FilenameAt(noon.Add(time.Duration(i) * time.Second)), CreatedAt: at}
			if rapid.Bool().Draw(t, "verified") {
				b.VerifiedAt = &at
			}
			all = append(all, b)
		}
		var last []backup.Backup
		for _, b := range all {
			if !slices.ContainsFunc(all, func(o backup.Backup) bool { return o.Outlasts(b) }) {
				last = append(last, b)
			}
		}
		if len(last) != 1 {
			t.Fatalf("%d of %+v outlast all others", len(last), all)
		}
		for _, b := range all {
			if b.VerifiedAt != nil && last[0].VerifiedAt == nil ||
				(b.VerifiedAt != nil) == (last[0].VerifiedAt != nil) && b.CreatedAt.After(last[0].CreatedAt) {
				t.Fatalf("%+v is kept rather than %+v", last[0], b)
			}
		}
	})
}

func TestOnlyADeletionBackupIsKeptFromItsCustomer(t *testing.T) {
	for _, trigger := range backup.Triggers {
		err := backup.Backup{Trigger: trigger}.Deletable()
		if fault.Has(err, fault.BackupConflict) != (trigger == backup.Deletion) {
			t.Errorf("%s: %v", trigger, err)
		}
	}
}

func database(n int) id.DatabaseID {
	return id.DatabaseID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n))
}

func TestDailyBackupComesOnceADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := database(rapid.IntRange(0, 1<<30).Draw(t, "database"))
		created := noon.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "created")))
		next := backup.NextDaily(db, created)
		if !next.After(created) || next.Sub(created) > 24*time.Hour {
			t.Fatalf("first backup of %s at %s", created, next)
		}
		if just := backup.NextDaily(db, next.Add(-1)); !just.Equal(next) {
			t.Fatalf("just before %s the next is at %s", next, just)
		}
		if second := backup.NextDaily(db, next); !second.Equal(next.Add(24 * time.Hour)) {
			t.Fatalf("the one after %s is at %s", next, second)
		}
	})
}

func TestBackupsAreSpreadOverTheDay(t *testing.T) {
	const databases, hours = 5000, 24
	var perHour [hours]int
	for n := range databases {
		perHour[backup.Slot(database(n))/time.Hour]++
	}
	for hour, n := range perHour {
		if n < databases/hours/2 || n > databases/hours*2 {
			t.Errorf("%d backups in hour %d", n, hour)
		}
	}
}

// The name of a backup is the one way to write its second.
func FuzzParseFilename(f *testing.F) {
	for _, seed := range []string{"20260301_120000.sql.gz", "20260229_120000.sql.gz", "../x.sql.gz", "20260301_1200.0.sql.gz", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := backup.ParseFilename(s)
		if err != nil {
			return
		}
		if string(name) != s || backup.FilenameAt(name.Time()) != name || name.Stem()+".sql.gz" != s {
			t.Fatalf("%q was accepted and means %q", s, backup.FilenameAt(name.Time()))
		}
	})
}

func TestWhatAClientLacksOfAFile(t *testing.T) {
	stored := backup.Backup{SizeBytes: 10, ChecksumSHA256: "a"}
	for has, want := range map[backup.Beginning]int64{
		{}:                      0,
		{Bytes: 1}:              1,
		{Bytes: 9, SHA256: "a"}: 9,
		{Bytes: 9, SHA256: "b"}: 0,
		{Bytes: 10}:             0,
		{Bytes: 11}:             0,
		{Bytes: -1}:             0,
	} {
		if got := stored.After(has); got != want {
			t.Errorf("after %+v: from %d on", has, got)
		}
	}
}
