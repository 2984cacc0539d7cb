package backup

import (
	"hash/fnv"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

const day = 24 * time.Hour

// Slot is the time of day, in UTC and whole seconds, at which a database's scheduled backup starts. It is derived from the ID
// alone, which spreads the backups of many databases evenly over the day and keeps each at the same time.
func Slot(db id.DatabaseID) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(db)) // a hash never fails
	return time.Duration(mix(h.Sum64())%uint64(day/time.Second)) * time.Second
}

// mix improves FNV's weak low bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Next is when the next backup of a schedule is due; nil: none ever is.
func Next(db id.DatabaseID, s database.Schedule, after time.Time) *time.Time {
	if s != database.Daily {
		return nil
	}
	next := NextDaily(db, after)
	return &next
}

// NextDaily returns the database's first slot strictly after the given time. So the first backup is due within a day of
// creation, and days missed in an outage are made up for by one backup, not several.
func NextDaily(db id.DatabaseID, after time.Time) time.Time {
	after = after.UTC()
	at := after.Truncate(day).Add(Slot(db))
	if !at.After(after) {
		at = at.Add(day)
	}
	return at
}
