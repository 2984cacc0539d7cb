package deletion

import "github.com/pgherd/pgherd/core/stage"

// The stages of a deletion, beside those of every operation.
const (
	Closing   stage.Stage = "closing"
	BackingUp stage.Stage = "backing_up" // the operation shows what the agent is at
	Isolating stage.Stage = "isolating"
)

// The events of a deletion.
const (
	Shut     stage.Event = "shut"      // customers are out; a backup is to be made
	ShutBare stage.Event = "shut_bare" // the same; it is deleted without a backup
	Missing  stage.Event = "missing"   // the server has no such database, which was in error or is deleted without a backup
	BackedUp stage.Event = "backed_up" // there is a verified file
	Isolated stage.Event = "isolated"  // nobody can enter it any more
	Reopened stage.Event = "reopened"  // the database is as it was, and at the agent the operation is closed
)

// Effects of the tables.
const (
	ReopenFirst = "reopen"
	SetRecord   = "set the record as it was"
	KeepTomb    = "keep a tombstone"
	DropRecord  = "remove the record"
)

var (
	to       = stage.To
	canceled = to(stage.Canceling, ReopenFirst)
	refused  = to(stage.Failing, ReopenFirst)
	isolates = to(Isolating, stage.CommitIntent)
	deleted  = to(stage.Succeeded, KeepTomb, stage.EmitEvent)
)

// Machine is the machine of deletions. Isolating is the point of no return: from its intent on, the agent alone knows whether
// customers have the database, and only its word leads back.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Closing, BackingUp, Isolating, stage.Failing, stage.Canceling, stage.Succeeded, stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, stage.Cancel, Shut, ShutBare, Missing, BackedUp, stage.Refused, stage.Busy, Isolated, Reopened,
		stage.Completed,
	},
	BackingUp,
	stage.Moves{
		stage.Queued: {stage.Advance: to(Closing), stage.Cancel: to(stage.Canceled, SetRecord, stage.EmitEvent)},
		Closing: {
			Shut: to(BackingUp), ShutBare: isolates, Missing: deleted, stage.Cancel: canceled, stage.Refused: refused,
		},
		BackingUp:       {BackedUp: isolates, Missing: isolates, stage.Cancel: canceled, stage.Refused: refused},
		Isolating:       {Isolated: deleted, Missing: deleted, stage.Busy: to(Isolating), stage.Refused: refused},
		stage.Failing:   {Reopened: to(stage.Failed, SetRecord, stage.EmitEvent), stage.Completed: to(Isolating)},
		stage.Canceling: {Reopened: to(stage.Canceled, SetRecord, stage.EmitEvent), stage.Completed: to(Isolating)},
	})
