package deletion

import (
	"slices"

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
func Of(o operation.Operation) Stage {
	stage := Stage(o.Stage)
	if o.Status.Final() {
		stage = Stage(o.Status)
	}
	if slices.Contains(Stages, stage) {
		return stage
	}
	return BackingUp
}

// Event is what happens to a deletion.
type Event string

// The events.
const (
	Advance   Event = "advance"   // a worker's turn
	Cancel    Event = "cancel"    // a user asks
	Shut      Event = "shut"      // customers are out; a backup is to be made
	ShutBare  Event = "shut_bare" // the same; it is deleted without a backup
	Missing   Event = "missing"   // the server has no such database, which was in error
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

// row is one of the table: what it says, and never for every other event.
func row[S, E ~string](events []E, says map[E]machine.Cell[S]) map[E]machine.Cell[S] {
	whole := map[E]machine.Cell[S]{}
	for _, e := range events {
		cell, said := says[e]
		if !said {
			cell = machine.Refuse[S](fault.InternalError)
		}
		whole[e] = cell
	}
	return whole
}

var (
	to       = machine.To[Stage]
	conflict = machine.Refuse[Stage](fault.DatabaseStateConflict)
)

type cells = map[Event]machine.Cell[Stage]

// Transitions is the machine. Isolating is the point of no return: from its intent on, the agent alone knows whether customers
// have the database, and only its word leads back.
var Transitions = machine.Table[Stage, Event]{
	Queued: row(Events, cells{Advance: to(Closing), Cancel: to(Canceled, SetRecord, EmitEvent)}),
	Closing: row(Events, cells{
		Advance: to(Closing), Cancel: to(Canceling, ReopenFirst), Shut: to(BackingUp), ShutBare: to(Isolating, CommitIntent),
		Missing: to(Succeeded, KeepTomb, EmitEvent), Refused: to(Failing, ReopenFirst),
	}),
	BackingUp: row(Events, cells{
		Advance: to(BackingUp), Cancel: to(Canceling, ReopenFirst), BackedUp: to(Isolating, CommitIntent),
		Refused: to(Failing, ReopenFirst),
	}),
	Isolating: row(Events, cells{
		Advance: to(Isolating), Cancel: conflict, Refused: to(Failing, ReopenFirst), Busy: to(Isolating),
		Isolated: to(Succeeded, KeepTomb, EmitEvent),
	}),
	Failing: row(Events, cells{
		Advance: to(Failing), Cancel: conflict, Reopened: to(Failed, SetRecord, EmitEvent), Completed: to(Isolating),
	}),
	Canceling: row(Events, cells{
		Advance: to(Canceling), Cancel: to(Canceling), Reopened: to(Canceled, SetRecord, EmitEvent), Completed: to(Isolating),
	}),
	Succeeded: row(Events, cells{Cancel: conflict}),
	Failed:    row(Events, cells{Cancel: conflict}),
	Canceled:  row(Events, cells{Cancel: to(Canceled)}),
}

// Decide applies an event.
func (s Stage) Decide(e Event) (machine.Cell[Stage], error) { return Transitions.Decide(s, e) }

// Cancelable reports whether a deletion may still be canceled: until the isolation begins.
func Cancelable(o operation.Operation) bool {
	_, err := Of(o).Decide(Cancel)
	return err == nil
}
