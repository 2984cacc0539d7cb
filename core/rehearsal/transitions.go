package rehearsal

import (
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of a rehearsal, beside those of every operation.
const (
	Making    stage.Stage = "making"
	Admitting stage.Stage = "admitting"
	Dumping   stage.Stage = "dumping"
	Loading               = restore.Loading // the operation shows one of restore.Parts
	Clearing  stage.Stage = "clearing"
)

// The events of a rehearsal.
const (
	Made     stage.Event = "made"     // the database stands at the other server, empty and closed
	Admitted stage.Event = "admitted" // the server that has it lets the other one in
	Dumped   stage.Event = "dumped"   // there is a file
	Tried    stage.Event = "tried"    // it is known what breaks
)

// Effects of the table.
const (
	RemoveCopy = "close at both agents, nothing is left of the copy"
	Keep       = "the result is kept"
)

var (
	to       = stage.To
	refused  = to(stage.Failing, RemoveCopy)
	canceled = to(stage.Canceling, RemoveCopy)
)

// undoable are the cells of a stage, which a failure ends, or a request to cancel.
func undoable(on stage.Event, next stage.Cell) map[stage.Event]stage.Cell {
	return map[stage.Event]stage.Cell{on: next, stage.Refused: refused, stage.Cancel: canceled}
}

// Machine is the machine of rehearsals. Every way out leaves nothing of the copy, and nothing of the database is changed.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Making, Admitting, Dumping, Loading, Clearing, stage.Failing, stage.Canceling, stage.Succeeded,
		stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, stage.Cancel, Made, Admitted, Dumped, Tried, stage.Refused, stage.Closed, stage.Completed,
	},
	Loading,
	stage.Moves{
		stage.Queued:    {stage.Advance: to(Making), stage.Cancel: to(stage.Canceled, stage.EmitEvent)},
		Making:          undoable(Made, to(Admitting)),
		Admitting:       undoable(Admitted, to(Dumping)),
		Dumping:         undoable(Dumped, to(Loading)),
		Loading:         undoable(Tried, to(Clearing)),
		Clearing:        undoable(stage.Closed, to(stage.Succeeded, RemoveCopy, Keep, stage.EmitEvent)),
		stage.Failing:   {stage.Closed: to(stage.Failed, stage.EmitEvent)},
		stage.Canceling: {stage.Closed: to(stage.Canceled, stage.EmitEvent)},
	})
