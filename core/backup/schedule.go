package backup

import (
	"hash/fnv"
	"time"

	"github.com/pgherd/pgherd/core/id"
)

const day = 24 * time.Hour

// Slot is the time of day, in UTC and whole seconds, at which a database's scheduled backup starts. It follows from the ID
// alone, so that the backups of many databases are spread evenly over the day and each keeps its time.
func Slot(db id.DatabaseID) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(db)) // a hash never fails
	return time.Duration(mix(h.Sum64())%uint64(day/time.Second)) * time.Second
}

// mix spreads FNV's weak low bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// NextDaily is the first slot of the database strictly after the given time. A database's first backup is thus due within a
// day of its creation, and days missed in an outage are made up by one backup, not by many.
func NextDaily(db id.DatabaseID, after time.Time) time.Time {
	after = after.UTC()
	at := after.Truncate(day).Add(Slot(db))
	if !at.After(after) {
		at = at.Add(day)
	}
	return at
}
