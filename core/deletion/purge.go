package deletion

import "github.com/pgherd/pgherd/core/stage"

// Removing is the stage of a purge in which the agent works.
const Removing stage.Stage = "removing"

// The events of a purge.
const (
	Removed stage.Event = "removed" // nothing is left on the server
	Kept    stage.Event = "kept"    // the database is in service
)

// Purge is the machine of purges. Only an operator's order takes one back, which puts the database into service as far as it
// stands.
var Purge = stage.New(
	[]stage.Stage{stage.Queued, Removing, stage.Failing, stage.Succeeded, stage.Failed},
	[]stage.Event{stage.Advance, Removed, stage.Refused, Kept, stage.Completed},
	Removing,
	stage.Moves{
		stage.Queued:  {stage.Advance: to(Removing)},
		Removing:      {Removed: to(stage.Succeeded, DropRecord), stage.Refused: to(stage.Failing)},
		stage.Failing: {Kept: to(stage.Failed, SetRecord), stage.Completed: to(Removing)},
	})
