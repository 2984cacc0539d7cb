package archive

import (
	"cmp"
	"slices"
	"time"
)

// Plan says how often the whole server is copied, and for how long what is needed for a moment is kept.
type Plan struct {
	// Window is how far back a moment may be.
	Window time.Duration
	// FullEvery and EachEvery are the pauses between full copies, and between any two. What was written in such a pause is
	// replayed at most to have a moment back.
	FullEvery, EachEvery time.Duration
	// Segments is how many may follow the newest copy before there is another one in less than EachEvery, as long as copies take
	// no more than a hundredth of the time.
	Segments int
}

// DefaultPlan is what holds where a field is 0.
var DefaultPlan = Plan{Window: week, FullEvery: week, EachEvery: 4 * time.Hour, Segments: 360}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

func (p Plan) complete() Plan {
	return Plan{
		Window: cmp.Or(p.Window, DefaultPlan.Window), FullEvery: cmp.Or(p.FullEvery, DefaultPlan.FullEvery),
		EachEvery: cmp.Or(p.EachEvery, DefaultPlan.EachEvery), Segments: cmp.Or(p.Segments, DefaultPlan.Segments),
	}
}

// Days is the window in whole days.
func (p Plan) Days() int { return max(1, int((p.complete().Window+day-1)/day)) }

// due says whether a copy is to be made now, and whether a full one. After a segment that is missing, nothing can be had back
// before there is another copy. since is how many segments were stored since the newest copy.
func (p Plan) due(backups []Backup, unbroken bool, since int, now time.Time) (due, full bool) {
	fulls := slices.DeleteFunc(slices.Clone(backups), func(b Backup) bool { return !b.Full })
	full = !newest(fulls).Add(p.FullEvery).After(now)
	return full || !unbroken || !newest(backups).Add(p.EachEvery).After(now) || since >= p.Segments && rested(backups, now), full
}

// copyShare is how many times as long as the newest copy took the pause after it is at least, where it is not EachEvery.
const copyShare = 100

// rested reports whether another copy takes no more than its share of the time, if it takes as long as the newest.
func rested(backups []Backup, now time.Time) bool {
	if len(backups) == 0 {
		return true
	}
	last := slices.MaxFunc(backups, func(a, b Backup) int { return a.Stopped.Compare(b.Stopped) })
	return !last.Stopped.Add(copyShare * last.Stopped.Sub(last.Started)).After(now)
}

// after counts the segments after the newest copy.
func after(backups []Backup, stored []Stored) (n int) {
	for _, s := range stored {
		if len(backups) > 0 && s.Segment > backups[len(backups)-1].Last {
			n++
		}
	}
	return n
}

// newest is when the last of some copies was made; zero: there is none.
func newest(list []Backup) (at time.Time) {
	for _, b := range list {
		if b.Stopped.After(at) {
			at = b.Stopped
		}
	}
	return at
}
