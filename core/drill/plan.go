package drill

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// Plan is what is known of the drills of a server that are to come.
type Plan struct {
	ServerID id.ServerID `db:"server_id"`
	DueAt    time.Time   `db:"due_at"`
	// DatabaseID and PointInTime are what the next one is of; empty: whatever chance says.
	DatabaseID  id.DatabaseID `db:"database_id"`
	PointInTime *time.Time    `db:"point_in_time"`
	// Repeats says that the next one is of one that has failed.
	Repeats bool `db:"repeats"`
	// UnprovenSince is since when nothing of the server was proven: the end of the last drill that did, or the first look for one.
	// Nil: there is nothing to prove, as the server keeps no archive, or has no database.
	UnprovenSince *time.Time `db:"unproven_since"`
}

const (
	day = 24 * time.Hour
	// again is the pause before the next try where there was none. So nobody has to order it once there is room.
	again = time.Hour
	// repeatAfter is the pause before a drill that has failed is repeated, which tells a mistake from a fault.
	repeatAfter = 20 * time.Minute
	// edge is how far the ends of a window are left alone: they are where copies are removed, and what was just written arrives.
	edge = 2 * time.Minute
)

// Random is a random number, each equally likely.
type Random uint64

// below is a number below n, which is not 0.
func (r Random) below(n int64) int64 { return int64(uint64(r) % uint64(n)) }

// NextDay is a random time of the day after another one, in UTC.
func NextDay(after time.Time, r Random) time.Time {
	return after.UTC().Truncate(day).Add(day + time.Duration(r.below(int64(day))))
}

// First returns the plan of a server that is new: its first drill is within a day, if it keeps an archive.
func (p Plan) First(now time.Time, r Random, archived bool) Plan {
	next := Plan{ServerID: p.ServerID, DueAt: now.Add(time.Duration(r.below(int64(day))) + 1)}
	if archived {
		next.UnprovenSince = &now
	}
	return next
}

// Looked returns the plan of a server that has nothing to be proven: there is no archive, or no database.
func (p Plan) Looked(now time.Time, r Random) Plan {
	return Plan{ServerID: p.ServerID, DueAt: NextDay(now, r)}
}

// Later returns the plan where none could begin now.
func (p Plan) Later(now time.Time) Plan {
	return Plan{ServerID: p.ServerID, DueAt: now.Add(again), UnprovenSince: since(p.UnprovenSince, now)}
}

// Ordered returns the plan of a server of which somebody wants a drill now.
func (p Plan) Ordered(now time.Time, of id.DatabaseID, at *time.Time) Plan {
	return Plan{ServerID: p.ServerID, DueAt: now, DatabaseID: of, PointInTime: at, UnprovenSince: p.UnprovenSince}
}

// After returns the plan once a drill has ended: the next one is tomorrow. One that has failed is repeated before; one that was
// not run is tried again.
func (p Plan) After(d Drill, now time.Time, r Random) Plan {
	next := Plan{ServerID: p.ServerID, DueAt: NextDay(now, r), UnprovenSince: since(p.UnprovenSince, d.BegunAt)}
	switch {
	case d.Outcome == Proven:
		next.UnprovenSince = &now
	case d.Outcome == NotRun:
		next.DueAt = now.Add(again)
	case !d.Repeats:
		next.DueAt, next.DatabaseID, next.PointInTime, next.Repeats = now.Add(repeatAfter), d.DatabaseID, &d.PointInTime, true
	}
	return next
}

func since(known *time.Time, now time.Time) *time.Time {
	if known != nil {
		return known
	}
	return &now
}

// One is one of several, by chance. There is one at least.
func One[T any](list []T, r Random) T { return list[r.below(int64(len(list)))] }

// Second is a random whole second of a window, in none of its gaps and not close to its ends; false where there is none.
func Second(w recovery.Window, r Random) (at time.Time, ok bool) {
	type piece struct{ from, seconds int64 }
	var list []piece
	var all int64
	add := func(from, to time.Time) {
		p := piece{from: from.Add(time.Second - time.Nanosecond).Unix()}
		if p.seconds = to.Unix() - p.from + 1; p.seconds > 0 {
			list, all = append(list, p), all+p.seconds
		}
	}
	if w.Empty() {
		return at, false
	}
	from, to := w.From.Add(edge), w.To.Add(-edge)
	for _, g := range w.Gaps {
		if g.From.Before(to) {
			add(from, g.From)
		} else {
			add(from, to)
		}
		if g.To.After(from) {
			from = g.To
		}
	}
	if add(from, to); all == 0 {
		return at, false
	}
	left := r.below(all)
	for _, p := range list {
		if left < p.seconds {
			return time.Unix(p.from+left, 0).UTC(), true
		}
		left -= p.seconds
	}
	return at, false
}

// LastBefore is the last verified backup of a list, newest first, that was begun before a moment; false where there is none.
func LastBefore(list []backup.Backup, at time.Time) (last backup.Backup, ok bool) {
	for _, b := range list {
		if b.VerifiedAt != nil && b.CreatedAt.Before(at) {
			return b, true
		}
	}
	return last, false
}
