package backup

import "github.com/pgherd/pgherd/core/stage"

// Making is the stage of a backup in which the agent works; the operation shows what it is at.
const Making stage.Stage = "making"

// Dumping is what an agent says that it is at while it writes a file. Clients must not depend on it.
const Dumping = "dumping"

// Made is what happens to a backup: there is a file with its record, verified where that was asked for.
const Made stage.Event = "made"

// Machine is the machine of backups. One only reads, so it is canceled at any time, and only the agent has something to take
// back.
var Machine = stage.New(
	[]stage.Stage{stage.Queued, Making, stage.Succeeded, stage.Failed, stage.Canceled},
	[]stage.Event{stage.Advance, stage.Cancel, Made, stage.Refused, stage.Completed},
	Making,
	stage.Moves{
		stage.Queued: {stage.Advance: stage.To(Making), stage.Cancel: stage.To(stage.Canceled, stage.EmitEvent)},
		Making: {
			Made:          stage.To(stage.Succeeded, stage.EmitEvent),
			stage.Cancel:  stage.To(stage.Canceled, stage.CloseAtAgent, stage.EmitEvent),
			stage.Refused: stage.To(stage.Failed, stage.CloseAtAgent, stage.EmitEvent), stage.Completed: stage.To(Making),
		},
	})
