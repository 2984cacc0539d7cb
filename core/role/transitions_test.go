package role

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
)

func TestMachineIsComplete(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
}

// moves is every way from one status to another, written a second time.
var moves = map[Status]map[Event]Status{
	Reserved: {Prepare: SQLReady, Delete: Reserved, Dropped: Removed, Kept: Revoked, Undone: Reserved},
	SQLReady: {Prepare: SQLReady, Admit: Ready, Delete: SQLReady, Dropped: Removed, Kept: Revoked, Undone: SQLReady},
	Ready: {
		Admit: Ready, Reveal: Ready, Rename: Ready, Rotate: Updating, Revoke: Updating, Delete: Updating, Expire: Expired,
	},
	Updating: {Rotated: Ready, Shut: Revoked, Undone: Ready},
	Revoked:  {Rename: Revoked, Delete: Revoked, Remove: Revoked, Dropped: Removed, Kept: Revoked, Undone: Revoked},
	Expired:  {Revoke: Updating, Delete: Updating, Shut: Expired, Undone: Expired},
	Removed:  {Delete: Removed, Remove: Removed},
}

// While there is a role, a refusal says why it does not go; then, that it is gone.
func TestMoves(t *testing.T) {
	alive := slices.DeleteFunc(slices.Clone(Statuses), func(s Status) bool { return s == Removed })
	machinetest.Moves(t, Transitions, alive, Events, moves, fault.ManagedRoleConflict)
	machinetest.Moves(t, Transitions, []Status{Removed}, Events, moves, fault.RoleNotFound)
}

// A cell has an effect exactly where something must be done on the server, or a password must go.
func TestEffects(t *testing.T) {
	want := map[Status]map[Event]string{
		Reserved: {Prepare: MakeRole, Delete: DropRole, Dropped: Forget, Kept: Forget},
		SQLReady: {Admit: OpenLogin, Delete: DropRole, Dropped: Forget, Kept: Forget},
		Ready:    {Rotate: StartProof, Revoke: StartProof, Delete: StartProof, Expire: StartProof},
		Updating: {Shut: Forget},
		Revoked:  {Delete: DropRole, Remove: DropRole},
		Expired:  {Revoke: StartProof, Delete: StartProof},
	}
	for _, s := range Statuses {
		for _, e := range Events {
			var effects []string
			if effect, ok := want[s][e]; ok {
				effects = []string{effect}
			}
			if cell := Transitions[s][e]; !slices.Equal(cell.Effects, effects) {
				t.Errorf("%s/%s: %q, want %q", s, e, cell.Effects, effects)
			}
		}
	}
}

func TestARemovedRoleIsNotThere(t *testing.T) {
	if _, err := Removed.Decide(Rotate); !fault.Has(err, fault.RoleNotFound) || err.Error() != ErrNotFound().Error() {
		t.Errorf("a removed role tells more than that it is not there: %v", err)
	}
	if cell, err := Removed.Decide(Remove); err != nil || cell.Next != Removed {
		t.Errorf("removing a removed role: %+v, %v", cell, err)
	}
}

// reachable is every status that some events lead to.
func reachable(from Status) map[Status]bool {
	seen := map[Status]bool{from: true}
	for waiting := []Status{from}; len(waiting) > 0; waiting = waiting[1:] {
		for _, e := range Events {
			if cell, err := waiting[0].Decide(e); err == nil && !seen[cell.Next] {
				seen[cell.Next] = true
				waiting = append(waiting, cell.Next)
			}
		}
	}
	return seen
}

func TestWhatCanStillBecome(t *testing.T) {
	for _, s := range Statuses {
		if !reachable(Reserved)[s] {
			t.Errorf("no role ever gets %s", s)
		}
		if !reachable(s)[Removed] {
			t.Errorf("a role that is %s can never be removed", s)
		}
	}
	if got := reachable(Revoked); len(got) != 2 {
		t.Errorf("a revoked role can become %v", got)
	}
	if got := reachable(Removed); len(got) != 1 {
		t.Errorf("a removed role can become %v", got)
	}
}
