package deletion

import (
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/stage"
)

// The kinds of operations about deleted databases.
const (
	KindDelete  operation.Kind = "delete"
	KindRecover operation.Kind = "recover"
	KindPurge   operation.Kind = "purge" // which the API does not show
)

// Rejoining is the stage of a recovery in which the agent works.
const Rejoining stage.Stage = "rejoining"

// Rejoined is what happens to a recovery: the database is in service.
const Rejoined stage.Event = "rejoined"

// Recovery is the machine of recoveries. What a worker has begun can no longer be canceled: the agent may have let customers in.
var Recovery = stage.New(
	[]stage.Stage{stage.Queued, Rejoining, stage.Failing, stage.Succeeded, stage.Failed, stage.Canceled},
	[]stage.Event{stage.Advance, stage.Cancel, Rejoined, stage.Refused, stage.Closed, stage.Completed},
	Rejoining,
	stage.Moves{
		stage.Queued:  {stage.Advance: to(Rejoining), stage.Cancel: to(stage.Canceled, stage.EmitEvent)},
		Rejoining:     {Rejoined: to(stage.Succeeded, SetRecord, stage.EmitEvent), stage.Refused: to(stage.Failing)},
		stage.Failing: {stage.Closed: to(stage.Failed, stage.EmitEvent), stage.Completed: to(Rejoining)},
	})
