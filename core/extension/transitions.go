package extension

import "github.com/pgherd/pgherd/core/stage"

// Changing is the stage of a change in which the agent works; the operation shows what it is at.
const Changing stage.Stage = "changing"

// Changed is what happens to a change: the extension is installed or upgraded.
const Changed stage.Event = "changed"

// Machine is the machine of changes of extensions. Whether one has been made already is for the agent to say when it closes the
// operation, so it can be canceled at any time. One that has failed may still turn out to be made.
var Machine = stage.New(
	[]stage.Stage{stage.Queued, Changing, stage.Failing, stage.Succeeded, stage.Failed, stage.Canceled},
	[]stage.Event{stage.Advance, stage.Cancel, Changed, stage.Refused, stage.Closed, stage.Completed},
	Changing,
	stage.Moves{
		stage.Queued: {stage.Advance: stage.To(Changing), stage.Cancel: stage.To(stage.Canceled, stage.EmitEvent)},
		Changing: {
			Changed:       stage.To(stage.Succeeded, stage.EmitEvent),
			stage.Cancel:  stage.To(stage.Canceled, stage.CloseAtAgent, stage.EmitEvent),
			stage.Refused: stage.To(stage.Failing, stage.CloseAtAgent), stage.Completed: stage.To(Changing),
		},
		stage.Failing: {
			stage.Cancel: stage.To(stage.Failing), stage.Closed: stage.To(stage.Failed, stage.EmitEvent),
			stage.Completed: stage.To(Changing),
		},
	})
