package role

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestChangeMachine(t *testing.T) {
	machinetest.Complete(t, ChangeTransitions, ChangeStatuses, ChangeEvents)
	machinetest.Moves(t, ChangeTransitions, ChangeStatuses, ChangeEvents, map[ChangeStatus]map[ChangeEvent]ChangeStatus{
		Pending: {Confirmed: Completed, Declined: Refused, Postponed: Pending},
	}, fault.ManagedRoleConflict)
}

// What becomes of a change that its server refuses for good: by itself, and if an operator ends it.
func TestObservations(t *testing.T) {
	type ending struct {
		change ChangeEvent
		role   Event
	}
	open := ending{Postponed, ""}
	undone := ending{Declined, Undone}
	cases := []struct {
		kind Kind
		seen Observation
		own  ending // by itself
		cut  ending // by an operator
	}{
		{Rotation, NewInForce, ending{Confirmed, Rotated}, ending{Confirmed, Rotated}},
		{Rotation, NewShut, open, ending{Confirmed, Rotated}},
		{Rotation, OldInForce, undone, undone},
		{Rotation, OldShut, open, undone},
		{Rotation, NeitherPassword, open, undone},
		{Rotation, NoLogin, undone, undone},
		{Rotation, Unseen, open, undone},

		{Revocation, OldInForce, undone, undone},
		{Revocation, OldShut, open, undone},
		{Revocation, NeitherPassword, open, undone},
		{Revocation, Unseen, open, undone},
		{Revocation, NoLogin, ending{Confirmed, Shut}, ending{Confirmed, Shut}},

		// An expiry that is declined would begin again at once: that is left to an operator.
		{Expiry, OldInForce, open, undone},
		{Expiry, OldShut, open, undone},
		{Expiry, NeitherPassword, open, undone},
		{Expiry, Unseen, open, undone},
		{Expiry, NoLogin, ending{Confirmed, Shut}, ending{Confirmed, Shut}},

		{Removal, OldInForce, undone, undone},
		{Removal, OldShut, undone, undone},
		{Removal, NeitherPassword, undone, undone},
		{Removal, Unseen, undone, undone},
		{Removal, NoLogin, ending{Confirmed, Dropped}, ending{Confirmed, Dropped}},
	}
	for _, c := range cases {
		change := Change{Kind: c.kind, Status: Pending}
		var own, cut ending
		own.change, own.role = change.Settled(c.seen)
		cut.change, cut.role = change.CutShort(c.seen)
		if own != c.own || cut != c.cut {
			t.Errorf("%s, %s: %v by itself, %v cut short", c.kind, c.seen, own, cut)
		}
		for _, e := range []ending{own, cut} {
			if e != open && !slices.Contains(answers[c.kind], e.role) {
				t.Errorf("%s, %s: no role knows %s as its answer", c.kind, c.seen, e.role)
			}
		}
	}
}
