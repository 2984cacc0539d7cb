package role

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// ChangeEvent is what happens to a change.
type ChangeEvent string

// The events of a change.
const (
	Confirmed ChangeEvent = "confirmed" // the agent has proven it, or a look at the login shows that it was done
	Declined  ChangeEvent = "declined"  // the server has changed nothing and never will: it says so, or is no longer to
	Postponed ChangeEvent = "postponed" // nobody knows what has become of it, or it can still be done
)

// ChangeEvents lists every event in the order of the docs.
var ChangeEvents = []ChangeEvent{Confirmed, Declined, Postponed}

var (
	changeTo = machine.To[ChangeStatus]
	ended    = machine.Refuse[ChangeStatus](fault.ManagedRoleConflict)
)

// ChangeTransitions is the machine of changes.
var ChangeTransitions = machine.Table[ChangeStatus, ChangeEvent]{
	Pending:   {Confirmed: changeTo(Completed), Declined: changeTo(Refused), Postponed: changeTo(Pending)},
	Completed: {Confirmed: ended, Declined: ended, Postponed: ended},
	Refused:   {Confirmed: ended, Declined: ended, Postponed: ended},
}

// Decide applies an event; a refusal is MANAGED_ROLE_CONFLICT: the change has ended.
func (s ChangeStatus) Decide(e ChangeEvent) (machine.Cell[ChangeStatus], error) {
	return ChangeTransitions.Decide(s, e)
}
