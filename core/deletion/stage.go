package deletion

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// Stage is where a deletion stands.
type Stage string

// The stages.
const (
	Queued    Stage = operation.StageQueued
	Closing   Stage = "closing"
	BackingUp Stage = "backing_up"
	Isolating Stage = "isolating"
	Failing   Stage = "failing"
	Canceling Stage = "canceling"
	Succeeded Stage = Stage(operation.Succeeded)
	Failed    Stage = Stage(operation.Failed)
	Canceled  Stage = Stage(operation.Canceled)
)

// Stages lists them in the order of the docs.
var Stages = []Stage{Queued, Closing, BackingUp, Isolating, Failing, Canceling, Succeeded, Failed, Canceled}

// Of is the stage of an operation that deletes a database. While it is BackingUp, the operation shows what the agent is at.
func Of(o operation.Operation) Stage { return operation.StageOf(o, Stages, BackingUp) }

// Event is what happens to a deletion.
type Event string

// The events.
const (
	Advance   Event = "advance"   // a worker's turn
	Cancel    Event = "cancel"    // a user asks
	Shut      Event = "shut"      // customers are out; a backup is to be made
	ShutBare  Event = "shut_bare" // the same; it is deleted without a backup
	Missing   Event = "missing"   // the server has no such database, which was in error or is deleted without a backup
	BackedUp  Event = "backed_up" // there is a verified file
	Refused   Event = "refused"   // by the agent for good, or there is no verified file
	Busy      Event = "busy"      // the agent could not have the database alone, and has isolated nothing
	Isolated  Event = "isolated"  // nobody can enter it any more
	Reopened  Event = "reopened"  // the database is as it was, and at the agent the operation is closed
	Completed Event = "completed" // the agent says that it cannot be closed, as the database is isolated
)

// Events lists them in the order of the docs.
var Events = []Event{Advance, Cancel, Shut, ShutBare, Missing, BackedUp, Refused, Busy, Isolated, Reopened, Completed}

// Effects of the tables.
const (
	CommitIntent = "commit the intent"
	ReopenFirst  = "reopen"
	SetRecord    = "set the record as it was"
	KeepTomb     = "keep a tombstone"
	DropRecord   = "remove the record"
	EmitEvent    = "emit event"
)

var (
	to       = machine.To[Stage]
	never    = machine.Refuse[Stage](fault.InternalError)
	conflict = machine.Refuse[Stage](fault.DatabaseStateConflict)
)

// Transitions is the machine. Isolating is the point of no return: from its intent on, the agent alone knows whether customers
// have the database, and only its word leads back.
var Transitions = machine.Table[Stage, Event]{
	Queued: {
		Advance: to(Closing), Cancel: to(Canceled, SetRecord, EmitEvent), Shut: never, ShutBare: never,
		Missing: never, BackedUp: never, Refused: never, Busy: never, Isolated: never, Reopened: never,
		Completed: never,
	},
	Closing: {
		Advance: to(Closing), Cancel: to(Canceling, ReopenFirst), Shut: to(BackingUp),
		ShutBare: to(Isolating, CommitIntent), Missing: to(Succeeded, KeepTomb, EmitEvent), BackedUp: never,
		Refused: to(Failing, ReopenFirst), Busy: never, Isolated: never, Reopened: never, Completed: never,
	},
	BackingUp: {
		Advance: to(BackingUp), Cancel: to(Canceling, ReopenFirst), Shut: never, ShutBare: never,
		Missing: to(Isolating, CommitIntent), BackedUp: to(Isolating, CommitIntent), Refused: to(Failing, ReopenFirst),
		Busy: never, Isolated: never, Reopened: never, Completed: never,
	},
	Isolating: {
		Advance: to(Isolating), Cancel: conflict, Shut: never, ShutBare: never,
		Missing: to(Succeeded, KeepTomb, EmitEvent), BackedUp: never, Refused: to(Failing, ReopenFirst), Busy: to(Isolating),
		Isolated: to(Succeeded, KeepTomb, EmitEvent), Reopened: never, Completed: never,
	},
	Failing: {
		Advance: to(Failing), Cancel: conflict, Shut: never, ShutBare: never, Missing: never, BackedUp: never,
		Refused: never, Busy: never, Isolated: never, Reopened: to(Failed, SetRecord, EmitEvent),
		Completed: to(Isolating),
	},
	Canceling: {
		Advance: to(Canceling), Cancel: to(Canceling), Shut: never, ShutBare: never, Missing: never, BackedUp: never,
		Refused: never, Busy: never, Isolated: never, Reopened: to(Canceled, SetRecord, EmitEvent),
		Completed: to(Isolating),
	},
	Succeeded: {
		Advance: never, Cancel: conflict, Shut: never, ShutBare: never, Missing: never, BackedUp: never,
		Refused: never, Busy: never, Isolated: never, Reopened: never, Completed: never,
	},
	Failed: {
		Advance: never, Cancel: conflict, Shut: never, ShutBare: never, Missing: never, BackedUp: never,
		Refused: never, Busy: never, Isolated: never, Reopened: never, Completed: never,
	},
	Canceled: {
		Advance: never, Cancel: to(Canceled), Shut: never, ShutBare: never, Missing: never, BackedUp: never,
		Refused: never, Busy: never, Isolated: never, Reopened: never, Completed: never,
	},
}

// Decide applies an event.
func (s Stage) Decide(e Event) (machine.Cell[Stage], error) { return Transitions.Decide(s, e) }

// Cancelable reports whether a deletion may still be canceled: until the isolation begins.
func Cancelable(o operation.Operation) bool {
	_, err := Of(o).Decide(Cancel)
	return err == nil
}
