package role

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of an additional role.
type Status string

// The statuses. Only a ready role can log in.
const (
	Reserved Status = "reserved"  // recorded; what exists on the server is not known
	SQLReady Status = "sql_ready" // exists on the server but cannot log in
	Ready    Status = "ready"     // can log in
	Updating Status = "updating"  // a rotation or revocation is not proven yet
	Revoked  Status = "revoked"   // proven to be shut out; keeps its slot and what it owns
	Expired  Status = "expired"   // its credential's validity has ended
	Removed  Status = "removed"   // gone from the server; never listed
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Reserved, SQLReady, Ready, Updating, Revoked, Expired, Removed}

// Values lists them for the API's description.
func (Status) Values() []Status { return Statuses }

// Event is what happens to a role.
type Event string

// The events: first those of users and of time, then what the agent has proven.
const (
	Prepare Event = "prepare"
	Admit   Event = "admit"
	Reveal  Event = "reveal"
	Rename  Event = "rename"
	Rotate  Event = "rotate"
	Revoke  Event = "revoke"
	Delete  Event = "delete" // revoke where needed, then remove
	Remove  Event = "remove" // of a revoked role only
	Expire  Event = "expire" // the credential's validity ends

	Rotated Event = "rotated" // the new password works, and the old one is proven invalid
	Shut    Event = "shut"    // no password lets anybody in: the revocation is proven
	Dropped Event = "dropped" // the role is gone from the server
	Kept    Event = "kept"    // dependencies prevent the removal; the role is shut out
	Undone  Event = "undone"  // the change was declined, and changed nothing
)

// Events lists every event in the order of the docs.
var Events = []Event{
	Prepare, Admit, Reveal, Rename, Rotate, Revoke, Delete, Remove, Expire, Rotated, Shut, Dropped, Kept, Undone,
}

// Effects of the table.
const (
	MakeRole   = "make role"
	OpenLogin  = "open login"
	StartProof = "begin change"
	DropRole   = "begin removal"
	Forget     = "forget password"
)

var (
	to       = machine.To[Status]
	conflict = machine.Refuse[Status](fault.ManagedRoleConflict)
	gone     = machine.Refuse[Status](fault.RoleNotFound)
)

// Transitions is the machine.
var Transitions = machine.Table[Status, Event]{
	Reserved: {
		Prepare: to(SQLReady, MakeRole), Admit: conflict, Reveal: conflict, Rename: conflict,
		Rotate: conflict, Revoke: conflict, Delete: to(Reserved, DropRole), Remove: conflict, Expire: conflict,
		Rotated: conflict, Shut: conflict, Dropped: to(Removed, Forget), Kept: to(Revoked, Forget), Undone: to(Reserved),
	},
	SQLReady: {
		Prepare: to(SQLReady), Admit: to(Ready, OpenLogin), Reveal: conflict, Rename: conflict,
		Rotate: conflict, Revoke: conflict, Delete: to(SQLReady, DropRole), Remove: conflict, Expire: conflict,
		Rotated: conflict, Shut: conflict, Dropped: to(Removed, Forget), Kept: to(Revoked, Forget), Undone: to(SQLReady),
	},
	Ready: {
		Prepare: conflict, Admit: to(Ready), Reveal: to(Ready), Rename: to(Ready),
		Rotate: to(Updating, StartProof), Revoke: to(Updating, StartProof), Delete: to(Updating, StartProof), Remove: conflict,
		Expire:  to(Expired, StartProof),
		Rotated: conflict, Shut: conflict, Dropped: conflict, Kept: conflict, Undone: conflict,
	},
	Updating: {
		Prepare: conflict, Admit: conflict, Reveal: conflict, Rename: conflict,
		Rotate: conflict, Revoke: conflict, Delete: conflict, Remove: conflict, Expire: conflict,
		Rotated: to(Ready), Shut: to(Revoked, Forget), Dropped: conflict, Kept: conflict, Undone: to(Ready),
	},
	Revoked: {
		Prepare: conflict, Admit: conflict, Reveal: conflict, Rename: to(Revoked),
		Rotate: conflict, Revoke: conflict, Delete: to(Revoked, DropRole), Remove: to(Revoked, DropRole), Expire: conflict,
		Rotated: conflict, Shut: conflict, Dropped: to(Removed), Kept: to(Revoked), Undone: to(Revoked),
	},
	Expired: {
		Prepare: conflict, Admit: conflict, Reveal: conflict, Rename: conflict,
		Rotate: conflict, Revoke: to(Updating, StartProof), Delete: to(Updating, StartProof), Remove: conflict, Expire: conflict,
		Rotated: conflict, Shut: to(Expired), Dropped: conflict, Kept: conflict, Undone: to(Expired),
	},
	Removed: {
		Prepare: gone, Admit: gone, Reveal: gone, Rename: gone, Rotate: gone, Revoke: gone,
		Delete: to(Removed), Remove: to(Removed), Expire: gone, Rotated: gone, Shut: gone, Dropped: gone, Kept: gone, Undone: gone,
	},
}

// Decide applies an event. A refusal is MANAGED_ROLE_CONFLICT, and ROLE_NOT_FOUND for a removed role.
func (s Status) Decide(e Event) (machine.Cell[Status], error) {
	if s == Removed && Transitions[s][e].Code != "" {
		return machine.Cell[Status]{}, ErrNotFound()
	}
	return Transitions.Decide(s, e)
}
