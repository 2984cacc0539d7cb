package clone

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
)

// Stage is where a clone stands.
type Stage string

// The stages.
const (
	Queued    Stage = operation.StageQueued
	Making    Stage = "making"
	Dumping   Stage = "dumping"
	Loading   Stage = Stage(restore.Loading)
	Switching Stage = "switching"
	Settling  Stage = "settling"
	Failing   Stage = "failing"
	Canceling Stage = "canceling"
	Succeeded Stage = Stage(operation.Succeeded)
	Failed    Stage = Stage(operation.Failed)
	Canceled  Stage = Stage(operation.Canceled)
)

// Stages lists them in the order of the docs.
var Stages = []Stage{
	Queued, Making, Dumping, Loading, Switching, Settling, Failing, Canceling, Succeeded, Failed, Canceled,
}

// Of is the stage of a clone operation. While it is Loading, the operation shows one of restore.Parts.
func Of(o operation.Operation) Stage { return operation.StageOf(o, Stages, Loading) }

// Event is what happens to a clone.
type Event string

// The events.
const (
	Advance   Event = "advance"   // a worker's turn
	Cancel    Event = "cancel"    // a user asks
	Made      Event = "made"      // the clone stands at the agent, empty and closed; there is a backup to take
	MadeBare  Event = "made_bare" // the same; a file is to be made first
	Dumped    Event = "dumped"    // there is a file
	Loaded    Event = "loaded"    // the copy is whole and compared
	Refused   Event = "refused"   // by the agent for good, or the copy is too large
	Busy      Event = "busy"      // the agent could not have the empty database alone, and has switched nothing
	Switched  Event = "switched"  // the copy is the clone
	Settled   Event = "settled"   // its owner's log-in is proven, and nothing is left beside it
	Closed    Event = "closed"    // at the agent: there is no clone
	Completed Event = "completed" // the agent says that it cannot be closed, as it has switched
)

// Events lists them in the order of the docs.
var Events = []Event{
	Advance, Cancel, Made, MadeBare, Dumped, Loaded, Refused, Busy, Switched, Settled, Closed, Completed,
}

// Effects of the table.
const (
	CommitIntent = "commit the intent"
	CloseAtAgent = "close at agent"
	RemoveRecord = "remove the record"
	OpenRecord   = "make the record active"
	EmitEvent    = "emit event"
)

var (
	to       = machine.To[Stage]
	never    = machine.Refuse[Stage](fault.InternalError)
	conflict = machine.Refuse[Stage](fault.DatabaseStateConflict)
)

// Transitions is the machine. Switching is the point of no return: from its intent on, the agent alone knows whether customers
// have the clone, and only its word leads back. Every way out either makes the clone's record active or removes it.
var Transitions = machine.Table[Stage, Event]{
	Queued: {
		Advance: to(Making), Cancel: to(Canceled, RemoveRecord, EmitEvent), Made: never, MadeBare: never, Dumped: never,
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Making: {
		Advance: to(Making), Cancel: to(Canceling, CloseAtAgent), Made: to(Loading), MadeBare: to(Dumping),
		Dumped: never, Loaded: never, Refused: to(Failing, CloseAtAgent), Busy: never, Switched: never, Settled: never,
		Closed: never, Completed: never,
	},
	Dumping: {
		Advance: to(Dumping), Cancel: to(Canceling, CloseAtAgent), Made: never, MadeBare: never, Dumped: to(Loading),
		Loaded: never, Refused: to(Failing, CloseAtAgent), Busy: never, Switched: never, Settled: never, Closed: never,
		Completed: never,
	},
	Loading: {
		Advance: to(Loading), Cancel: to(Canceling, CloseAtAgent), Made: never, MadeBare: never, Dumped: never,
		Loaded: to(Switching, CommitIntent), Refused: to(Failing, CloseAtAgent), Busy: never, Switched: never,
		Settled: never, Closed: never, Completed: never,
	},
	Switching: {
		Advance: to(Switching), Cancel: conflict, Made: never, MadeBare: never, Dumped: never, Loaded: never,
		Refused: to(Failing, CloseAtAgent), Busy: to(Switching), Switched: to(Settling), Settled: never, Closed: never,
		Completed: never,
	},
	Settling: {
		Advance: to(Settling), Cancel: conflict, Made: never, MadeBare: never, Dumped: never, Loaded: never,
		Refused: never, Busy: never, Switched: never, Settled: to(Succeeded, OpenRecord, EmitEvent), Closed: never,
		Completed: never,
	},
	Failing: {
		Advance: to(Failing), Cancel: conflict, Made: never, MadeBare: never, Dumped: never, Loaded: never,
		Refused: never, Busy: never, Switched: never, Settled: never, Closed: to(Failed, RemoveRecord, EmitEvent),
		Completed: to(Switching),
	},
	Canceling: {
		Advance: to(Canceling), Cancel: to(Canceling), Made: never, MadeBare: never, Dumped: never, Loaded: never,
		Refused: never, Busy: never, Switched: never, Settled: never, Closed: to(Canceled, RemoveRecord, EmitEvent),
		Completed: to(Switching),
	},
	Succeeded: {
		Advance: never, Cancel: conflict, Made: never, MadeBare: never, Dumped: never, Loaded: never, Refused: never,
		Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Failed: {
		Advance: never, Cancel: conflict, Made: never, MadeBare: never, Dumped: never, Loaded: never, Refused: never,
		Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Canceled: {
		Advance: never, Cancel: to(Canceled), Made: never, MadeBare: never, Dumped: never, Loaded: never,
		Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
}

// Decide applies an event.
func (s Stage) Decide(e Event) (machine.Cell[Stage], error) { return Transitions.Decide(s, e) }

// Cancelable reports whether a clone may still be canceled: until its switch begins.
func Cancelable(o operation.Operation) bool {
	_, err := Of(o).Decide(Cancel)
	return err == nil
}
