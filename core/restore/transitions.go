package restore

import (
	"slices"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// Stage is where a restore stands.
type Stage string

// The stages.
const (
	Queued    Stage = operation.StageQueued
	Loading   Stage = "loading"
	Ready     Stage = "ready"
	Switching Stage = "switching"
	Settling  Stage = "settling"
	Failing   Stage = "failing"
	Canceling Stage = "canceling"
	Succeeded Stage = Stage(operation.Succeeded)
	Failed    Stage = Stage(operation.Failed)
	Canceled  Stage = Stage(operation.Canceled)
)

// Stages lists them in the order of the docs.
var Stages = []Stage{Queued, Loading, Ready, Switching, Settling, Failing, Canceling, Succeeded, Failed, Canceled}

// Parts are what an agent says that it is at while it makes a copy. The operation shows them in place of Loading.
var Parts = []string{Waiting, string(Loading), "granting", "comparing"}

// Waiting is the part before an agent begins: other work has its slots or its room.
const Waiting = "waiting"

// Shown is what the operation shows for a part of the loading. One that this version does not know is shown as Loading.
func Shown(part string) string {
	if slices.Contains(Parts, part) {
		return part
	}
	return string(Loading)
}

// Of is the stage of a restore operation.
func Of(o operation.Operation) Stage { return operation.StageOf(o, Stages, Loading) }

// Event is what happens to a restore.
type Event string

// The events.
const (
	Advance   Event = "advance"   // by a caller; where no caller drives it, a worker's turn
	Idle      Event = "idle"      // no caller has come in time, and a worker has it
	Cancel    Event = "cancel"    // a user asks
	Loaded    Event = "loaded"    // the copy is whole and compared
	Refused   Event = "refused"   // by the agent for good: there is no copy, or it is not switched to
	Busy      Event = "busy"      // the agent could not have the database alone, and has switched nothing
	Switched  Event = "switched"  // the copy is the database
	Settled   Event = "settled"   // the settings are in force, and what was replaced is given up
	Closed    Event = "closed"    // at the agent: there is no copy, and nothing was switched
	Completed Event = "completed" // the agent says that it cannot be closed, as it has switched
)

// Events lists them in the order of the docs.
var Events = []Event{Advance, Idle, Cancel, Loaded, Refused, Busy, Switched, Settled, Closed, Completed}

// Effects of the table.
const (
	CommitIntent = "commit the intent"
	RaiseSetting = "raise the generation of the settings"
	CloseAtAgent = "close at agent"
	EmitEvent    = "emit event"
)

var (
	to       = machine.To[Stage]
	never    = machine.Refuse[Stage](fault.InternalError)
	conflict = machine.Refuse[Stage](fault.DatabaseStateConflict)
	terminal = machine.Refuse[Stage](fault.RestoreOperationTerminal)
)

// Transitions is the machine. Switching is the point of no return: from its intent on, the agent alone knows which database
// customers have, and only its word leads back.
var Transitions = machine.Table[Stage, Event]{
	Queued: {
		Advance: to(Loading), Idle: to(Canceling, CloseAtAgent), Cancel: to(Canceled, EmitEvent),
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Loading: {
		Advance: to(Loading), Idle: to(Canceling, CloseAtAgent), Cancel: to(Canceling, CloseAtAgent),
		Loaded: to(Ready), Refused: to(Failing, CloseAtAgent), Busy: never, Switched: never, Settled: never,
		Closed: never, Completed: never,
	},
	Ready: {
		Advance: to(Switching, CommitIntent), Idle: to(Canceling, CloseAtAgent), Cancel: to(Canceling, CloseAtAgent),
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Switching: {
		Advance: to(Switching), Idle: to(Switching), Cancel: conflict,
		Loaded: never, Refused: to(Failing, CloseAtAgent), Busy: to(Switching), Switched: to(Settling, RaiseSetting),
		Settled: never, Closed: never, Completed: never,
	},
	Settling: {
		Advance: to(Settling), Idle: to(Settling), Cancel: conflict,
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: to(Succeeded, EmitEvent),
		Closed: never, Completed: never,
	},
	Failing: {
		Advance: to(Failing), Idle: to(Failing), Cancel: conflict,
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never,
		Closed: to(Failed, EmitEvent), Completed: to(Switching),
	},
	Canceling: {
		Advance: to(Canceling), Idle: to(Canceling), Cancel: to(Canceling),
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never,
		Closed: to(Canceled, EmitEvent), Completed: to(Switching),
	},
	Succeeded: {
		Advance: to(Succeeded), Idle: never, Cancel: conflict,
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Failed: {
		Advance: terminal, Idle: never, Cancel: conflict,
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
	Canceled: {
		Advance: terminal, Idle: never, Cancel: to(Canceled),
		Loaded: never, Refused: never, Busy: never, Switched: never, Settled: never, Closed: never, Completed: never,
	},
}

// Decide applies an event.
func (s Stage) Decide(e Event) (machine.Cell[Stage], error) { return Transitions.Decide(s, e) }

// Cancelable reports whether a restore may still be canceled: until its switch begins.
func Cancelable(o operation.Operation) bool {
	_, err := Of(o).Decide(Cancel)
	return err == nil
}

// Away is how long the callers of a managed restore may stay away at this stage. What has to be finished in any case does not
// wait for them.
func (s Stage) Away() time.Duration {
	if s == Queued || s == Loading || s == Ready {
		return CallerAway
	}
	return WorkAway
}

// Driven reports whether a restore waits for its callers, and ends when none comes.
func Driven(o operation.Operation) bool {
	in, err := operation.Decode[Input](o.Input)
	return err == nil && in.Managed && Of(o).Away() == CallerAway
}
