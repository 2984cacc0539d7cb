package backup

import (
	"hash/fnv"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// A stored backup is read again, whole: once in its retention, at a moment that nobody can foresee. So on each day the newest
// backup of some databases is read, and older ones of others, and what a store does to all of them is found at once.

const (
	// readingEvery is how often the backups of a database are looked at, and so how many of them are read at most, however many a
	// customer makes. It is twice as often as daily backups need.
	readingEvery = 12 * time.Hour
	// boundKept is taken for the retention of a backup that has none of its own.
	boundKept = 7 * day
	// damagedEvery is how often one that was found damaged is read: it may not be, where an operator has mended the store.
	damagedEvery = day
)

// NextReading returns the first time after another one at which the backups of a database are looked at, to read one. It is
// derived from the ID alone, as Slot, and six hours away from that.
func NextReading(db id.DatabaseID, after time.Time) time.Time {
	after = after.UTC()
	at := after.Truncate(readingEvery).Add((Slot(db) + readingEvery/2) % readingEvery)
	if !at.After(after) {
		at = at.Add(readingEvery)
	}
	return at
}

// ToRead returns the backup that has been due longest to be read; false where none is.
func ToRead(list []Backup, now time.Time) (pick Backup, due bool) {
	for _, b := range list {
		if at := b.readingDue(); !at.After(now) && (!due || at.Before(pick.readingDue())) {
			pick, due = b, true
		}
	}
	return pick, due
}

func (b Backup) readingDue() time.Time {
	switch {
	case b.LastReadAt == nil:
		return b.CreatedAt.Add(time.Duration(share(b.OperationID) * float64(b.kept())))
	case b.DamagedAt != nil:
		return b.LastReadAt.Add(damagedEvery)
	}
	return b.LastReadAt.Add(b.kept())
}

// kept is for how long a backup is kept at least.
func (b Backup) kept() time.Duration {
	if b.ExpiresAt == nil {
		return boundKept
	}
	return b.ExpiresAt.Sub(b.CreatedAt)
}

// share is a number from 0 to 1, below 1, which differs from operation to operation.
func share(op id.OperationID) float64 {
	const bits = 53 // of a float's fraction
	h := fnv.New64a()
	_, _ = h.Write([]byte(op)) // a hash never fails
	return float64(mix(h.Sum64())>>(64-bits)) / (1 << bits)
}

const (
	// leastPace is what a store must give in a second, on average, for a backup to be read.
	leastPace = 1 << 20
	// leastReading is what a reading may take in any case.
	leastReading = 10 * time.Minute
)

// ReadingTime is how long the reading of a backup of so many bytes may take. Longer than that, nobody can tell whether it is
// whole.
func ReadingTime(bytes int64) time.Duration {
	return leastReading + time.Duration(bytes/leastPace)*time.Second
}

// FoundWhole returns a backup that has been read, and is what was stored. verifiedAt is when it was verified, as its store says.
// mended reports whether it was taken to be damaged.
func (b Backup) FoundWhole(now time.Time, verifiedAt *time.Time) (after Backup, mended bool) {
	if mended = b.DamagedAt != nil; mended {
		b.DamagedAt, b.VerifiedAt = nil, verifiedAt
	}
	b.LastReadAt = &now
	return b, mended
}

// FoundDamaged returns a backup that has been read, and is not what was stored: it is not verified any more. news reports whether
// nobody knew that yet.
func (b Backup) FoundDamaged(now time.Time) (after Backup, news bool) {
	if news = b.DamagedAt == nil; news {
		b.DamagedAt, b.VerifiedAt = &now, nil
	}
	b.LastReadAt = &now
	return b, news
}

// Replacement is when the next backup of a database is due one of whose backups is damaged: at once, whatever its schedule is, as
// a scheduled one. A database that is deleted has none.
func Replacement(r database.Record, now time.Time) *time.Time {
	if r.Status.Gone() || r.NextBackupAt != nil && r.NextBackupAt.Before(now) {
		return r.NextBackupAt
	}
	return &now
}
