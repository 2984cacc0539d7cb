package deletion

import "github.com/pgherd/pgherd/core/stage"

// The stages of a purge. It has no way back, and no end but its own.
const (
	Erasing  stage.Stage = "erasing"
	Removing stage.Stage = "removing"
)

// The events of a purge.
const (
	Erased  stage.Event = "erased"  // no file of a backup is left, and no record of one
	Removed stage.Event = "removed" // nothing is left on the server
)

// Purge is the machine of purges.
var Purge = stage.New(
	[]stage.Stage{stage.Queued, Erasing, Removing, stage.Succeeded},
	[]stage.Event{stage.Advance, Erased, Removed},
	Erasing,
	stage.Moves{
		stage.Queued: {stage.Advance: to(Erasing)},
		Erasing:      {Erased: to(Removing)},
		Removing:     {Removed: to(stage.Succeeded, DropRecord)},
	})
