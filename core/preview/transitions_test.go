package preview

import (
	"testing"

	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestTable(t *testing.T) { machinetest.Complete(t, Transitions, Leases, Events) }

// moves are the moves of the decisions, written a second time. Everything else changes nothing or is refused.
func TestMoves(t *testing.T) {
	moves := map[Lease]map[Event]Lease{
		Active:     {Expire: Expired, End: Deleting},
		Expired:    {End: Deleting},
		Deleting:   {EndFailed: Expired, Ended: Deleted},
		Deleted:    {Recover: Recovering},
		Recovering: {RecoverFailed: Deleted, Recovered: Active},
	}
	for _, l := range Leases {
		for _, e := range Events {
			cell, err := l.Decide(e)
			want, moves := moves[l][e]
			switch {
			case moves && (err != nil || cell.Next != want):
				t.Errorf("%s/%s leads to %q: %v", l, e, cell.Next, err)
			case !moves && err == nil && cell.Next != l:
				t.Errorf("%s/%s leads to %q", l, e, cell.Next)
			}
		}
	}
}
