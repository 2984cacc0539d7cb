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
}

// DefaultPlan is what holds where a field is 0.
var DefaultPlan = Plan{Window: week, FullEvery: week, EachEvery: 4 * time.Hour}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

func (p Plan) complete() Plan {
	return Plan{
		Window: cmp.Or(p.Window, DefaultPlan.Window), FullEvery: cmp.Or(p.FullEvery, DefaultPlan.FullEvery),
		EachEvery: cmp.Or(p.EachEvery, DefaultPlan.EachEvery),
	}
}

// Days is the window in whole days.
func (p Plan) Days() int { return max(1, int((p.complete().Window+day-1)/day)) }

// due says whether a copy is to be made now, and whether a full one. After a segment that is missing, nothing can be had back
// before there is another copy.
func (p Plan) due(backups []Backup, unbroken bool, now time.Time) (due, full bool) {
	fulls := slices.DeleteFunc(slices.Clone(backups), func(b Backup) bool { return !b.Full })
	full = !newest(fulls).Add(p.FullEvery).After(now)
	return full || !unbroken || !newest(backups).Add(p.EachEvery).After(now), full
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
