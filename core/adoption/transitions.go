package adoption

import "github.com/pgherd/pgherd/core/stage"

// Taking is the stage of an adoption in which the agent is told of it.
const Taking stage.Stage = "taking"

// Taken is what happens to an adoption: the agent has carried out a command for the record.
const Taken stage.Event = "taken"

// Effects of the table.
const (
	SetRecord    = "set the record as the server has it"
	ForgetRecord = "remove the record"
)

var to = stage.To

// Machine is the machine of adoptions. An adoption changes nothing about a database that customers could see, so there is nothing
// to take back on the server; only once it is queued no more, nobody cancels it.
var Machine = stage.New(
	[]stage.Stage{stage.Queued, Taking, stage.Failing, stage.Succeeded, stage.Failed, stage.Canceled},
	[]stage.Event{stage.Advance, stage.Cancel, Taken, stage.Refused, stage.Closed, stage.Completed},
	Taking,
	stage.Moves{
		stage.Queued:  {stage.Advance: to(Taking), stage.Cancel: to(stage.Canceled, ForgetRecord)},
		Taking:        {Taken: to(stage.Succeeded, SetRecord), stage.Refused: to(stage.Failing, stage.CloseAtAgent)},
		stage.Failing: {stage.Closed: to(stage.Failed, ForgetRecord), stage.Completed: to(Taking)},
	})
