// Package snapshot holds the rules of snapshots: copies of the metadata that database servers keep where their backups are, so
// that an installation can be made anew whose metadata are lost.
package snapshot

import (
	"fmt"
	"slices"
	"time"
)

// Name says when a snapshot was taken, to a millisecond: names are in the order of their times. An installation takes no two at
// the same one.
type Name string

const nameFormat = "20060102T150405.000Z"

// NameAt is the name of a snapshot as of a time.
func NameAt(at time.Time) Name { return Name(at.UTC().Format(nameFormat)) }

// ParseName accepts what NameAt returns.
func ParseName(text string) (Name, error) {
	at, err := time.Parse(nameFormat, text)
	if err != nil || string(NameAt(at)) != text {
		return "", fmt.Errorf("%q is no name of a snapshot, such as 20260131T093000.000Z", text)
	}
	return Name(text), nil
}

// At is when the snapshot was taken; the zero time for what ParseName refuses.
func (n Name) At() time.Time {
	at, err := time.Parse(nameFormat, string(n))
	if err != nil {
		return time.Time{}
	}
	return at
}

// What a server keeps of an installation: the newest, the newest one of each of some hours, and of each of some days.
const (
	keptNewest = 3
	keptHours  = 24
	keptDays   = 7
)

// Kept is the most that Superseded leaves.
const Kept = keptNewest + keptHours + keptDays

// Superseded are those that a server removes of an installation's snapshots, oldest last. Hours and days without any do not
// count: so a clock that was wrong, or an installation that has long been away, removes none of the others.
func Superseded(all []Name) (list []Name) {
	newestFirst := slices.Compact(slices.Sorted(slices.Values(all)))
	slices.Reverse(newestFirst)
	hours, days := map[time.Time]bool{}, map[time.Time]bool{}
	for i, n := range newestFirst {
		keep := i < keptNewest
		for _, in := range []struct {
			seen map[time.Time]bool
			most int
			of   time.Time
		}{{hours, keptHours, n.At().Truncate(time.Hour)}, {days, keptDays, n.At().Truncate(24 * time.Hour)}} {
			if !in.seen[in.of] && len(in.seen) < in.most {
				in.seen[in.of], keep = true, true
			}
		}
		if !keep {
			list = append(list, n)
		}
	}
	return list
}

const (
	// LeastPause is between two snapshots of metadata that change.
	LeastPause = 5 * time.Minute
	// MostPause is how long the next snapshot waits at most, also where nothing has changed, or a snapshot takes long.
	MostPause = 30 * time.Minute
	// share is the part of the time that taking snapshots may take.
	share = 100
	// OldAfter is the age at which the newest one is told to be old.
	OldAfter = time.Hour
	// CheckEvery is how often one is read back whole from where it is kept.
	CheckEvery = 24 * time.Hour
	// Holders is how many servers keep snapshots.
	Holders = 5
)

// Last is what is known of the newest snapshot.
type Last struct {
	At      time.Time     // zero: there is none
	Took    time.Duration // how long it took to take and to send; 0: not known
	Changed bool          // the metadata may have changed since
}

// Due reports whether the next snapshot is to be taken. One from the future is none: a clock was wrong.
func (l Last) Due(now time.Time) bool {
	age := now.Sub(l.At)
	pause := MostPause
	if l.Changed {
		pause = min(max(LeastPause, share*l.Took), MostPause)
	}
	return age >= pause || age < 0
}

// Old reports whether a server that is to keep snapshots has no fresh one. A server that was added lately need not have any yet.
func Old(newest, added, now time.Time) bool {
	return now.Sub(newest) > OldAfter && now.Sub(added) > OldAfter
}
