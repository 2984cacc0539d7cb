package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgherd/pgherd/ports"
)

// waiting is a row of a queue, as claims see it.
type waiting[L ~string] struct {
	lane       L
	held, free bool      // a dispatcher has it; one may claim it
	since      time.Time // one may
	made       time.Time
	id         string
}

// dueSince is since when a row may be claimed and nobody holds it.
func dueSince(notBefore time.Time, until *time.Time) time.Time {
	if until != nil && until.After(notBefore) {
		return *until
	}
	return notBefore
}

// fairest is the row that the next claim gets: one of the lane with the fewest rows held, if fewer than most, then of the one
// that was last served before the others; of a lane the row that has been due longest.
func fairest[L ~string, R any](list []R, most int, turns map[L]int64, of func(R) waiting[L]) (none R, _ error) {
	held := map[L]int{}
	for _, row := range list {
		if w := of(row); w.held {
			held[w.lane]++
		}
	}
	list = slices.DeleteFunc(list, func(row R) bool { w := of(row); return !w.free || held[w.lane] >= most })
	if len(list) == 0 {
		return none, ports.ErrNoRow
	}
	return slices.MinFunc(list, func(r, q R) int {
		a, b := of(r), of(q)
		return cmp.Or(cmp.Compare(held[a.lane], held[b.lane]), cmp.Compare(turns[a.lane], turns[b.lane]),
			a.since.Compare(b.since), cmp.Compare(a.lane, b.lane), byTime(a.made, a.id, b.made, b.id))
	}), nil
}
