package backup_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/backup"
	coredb "github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// A database's backups are looked at twice a day, at the same times, and far from when its daily backup is made.
func TestReadingsComeTwiceADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db := database(rapid.IntRange(0, 1<<30).Draw(t, "database"))
		after := noon.Add(time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "after")))
		next := backup.NextReading(db, after)
		if !next.After(after) || next.Sub(after) > 12*time.Hour || !backup.NextReading(db, next).Equal(next.Add(12*time.Hour)) {
			t.Fatalf("after %s at %s, and then at %s", after, next, backup.NextReading(db, next))
		}
		if away := backup.NextDaily(db, next).Sub(next); away != 6*time.Hour && away != 18*time.Hour {
			t.Fatalf("%s before its backup", away)
		}
	})
}

// Whatever the retention, every day's backup is read once while it is kept, at most, and nearly all of them are: some when they
// are new, and some when they are old.
func TestEachBackupIsReadOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		db, first := database(rapid.IntRange(0, 1<<30).Draw(t, "database")), rapid.IntRange(0, 1<<30).Draw(t, "operation")
		days := rapid.SampledFrom([]int{7, 14, 30}).Draw(t, "days")
		var kept []backup.Backup
		const made = 300
		ages := []float64{} // of those that were read, as parts of the retention
		next := backup.NextReading(db, noon)
		for n := range made {
			now := backup.NextDaily(db, noon.AddDate(0, 0, n))
			kept = slices.DeleteFunc(kept, func(b backup.Backup) bool { return b.Expired(now) })
			op := id.OperationID(database(first + n))
			kept = append(kept, backup.Backup{OperationID: op, CreatedAt: now, ExpiresAt: backup.Expiry(backup.Scheduled, now, days)})
			for ; next.Before(now.AddDate(0, 0, 1)); next = backup.NextReading(db, next) {
				if b, due := backup.ToRead(kept, next); due {
					i := slices.IndexFunc(kept, func(o backup.Backup) bool { return o.OperationID == b.OperationID })
					if b.LastReadAt != nil {
						t.Fatalf("%s is read again", b.CreatedAt)
					}
					kept[i], _ = b.FoundWhole(next, nil)
					ages = append(ages, next.Sub(b.CreatedAt).Hours()/24/float64(days))
				}
			}
		}
		slices.Sort(ages)
		if n := len(ages); n < made*3/4 || ages[n/10] > 0.25 || ages[n-n/10] < 0.75 {
			t.Fatalf("%d of %d are read, at %.2f to %.2f", n, made, ages[n/10], ages[n-n/10])
		}
	})
}

func TestWhichBackupIsRead(t *testing.T) {
	at := func(hours int) *time.Time { return new(noon.Add(time.Duration(hours) * time.Hour)) }
	read := func(hours int) backup.Backup {
		return backup.Backup{CreatedAt: noon, ExpiresAt: at(7 * 24), LastReadAt: at(hours)}
	}
	bound := read(0)
	bound.ExpiresAt = nil
	damaged := read(5)
	damaged.DamagedAt = at(3)
	fresh := backup.Backup{CreatedAt: noon, ExpiresAt: at(7 * 24)}
	for name, c := range map[string]struct {
		list []backup.Backup
		now  *time.Time
		want int // -1: none
	}{
		"none":                       {nil, at(0), -1},
		"before its time":            {[]backup.Backup{read(1)}, at(7 * 24), -1},
		"a retention after the last": {[]backup.Backup{read(1)}, at(7*24 + 1), 0},
		"the longest due":            {[]backup.Backup{read(2), read(1), read(3)}, at(8 * 24), 1},
		"a deletion backup":          {[]backup.Backup{bound}, at(7 * 24), 0},
		"a damaged one is read soon": {[]backup.Backup{read(1), damaged}, at(29), 1},
		"a new one before it ends":   {[]backup.Backup{fresh}, at(7 * 24), 0},
		"a new one is not yet there": {[]backup.Backup{fresh}, at(-1), -1},
	} {
		b, due := backup.ToRead(c.list, *c.now)
		if due != (c.want >= 0) || due && b != c.list[c.want] {
			t.Errorf("%s: %+v, %t", name, b, due)
		}
	}
}

func TestWhatAReadingFinds(t *testing.T) {
	made, now, later := noon, noon.Add(time.Hour), noon.Add(2*time.Hour)
	whole, mended := backup.Backup{VerifiedAt: &made}.FoundWhole(now, nil)
	if mended || !whole.LastReadAt.Equal(now) || whole.VerifiedAt != &made {
		t.Errorf("whole: %+v, %t", whole, mended)
	}
	damaged, news := whole.FoundDamaged(later)
	if !news || damaged.VerifiedAt != nil || !damaged.DamagedAt.Equal(later) || !damaged.LastReadAt.Equal(later) {
		t.Errorf("damaged: %+v, %t", damaged, news)
	}
	again, news := damaged.FoundDamaged(later.Add(time.Hour))
	if news || !again.DamagedAt.Equal(later) {
		t.Errorf("damaged still: %+v, %t", again, news)
	}
	if back, mended := again.FoundWhole(later, &made); !mended || back.DamagedAt != nil || back.VerifiedAt != &made {
		t.Errorf("mended: %+v, %t", back, mended)
	}
}

// What is damaged is replaced at once and once, whatever the schedule is; but a database that is deleted is left alone.
func TestReplacement(t *testing.T) {
	now, before, after := noon, noon.Add(-time.Hour), noon.Add(time.Hour)
	for _, c := range []struct {
		status     coredb.Status
		next, want *time.Time
	}{
		{coredb.Active, &after, &now}, {coredb.Stopped, nil, &now}, {coredb.Active, &before, &before},
		{coredb.Deleted, nil, nil}, {coredb.Purging, &after, &after},
	} {
		got := backup.Replacement(coredb.Record{Status: c.status, NextBackupAt: c.next}, now)
		if (got == nil) != (c.want == nil) || got != nil && !got.Equal(*c.want) {
			t.Errorf("%s, next %v: %v", c.status, c.next, got)
		}
	}
}

func TestReadingTime(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{0: 10 * time.Minute, 1 << 30: 10*time.Minute + 1024*time.Second} {
		if got := backup.ReadingTime(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}
