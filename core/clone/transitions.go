package clone

import (
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of a clone, beside those of every operation.
const (
	Making    stage.Stage = "making"
	Dumping   stage.Stage = "dumping"       // the operation shows recovery.Stages first where a file of another moment is made
	Loading               = restore.Loading // the operation shows one of restore.Parts
	Switching stage.Stage = "switching"
	Settling  stage.Stage = "settling"
)

// The events of a clone.
const (
	Made     stage.Event = "made"      // the clone stands at the agent, empty and closed; there is a backup to take
	MadeBare stage.Event = "made_bare" // the same; a file is to be made first
	Dumped   stage.Event = "dumped"    // there is a file
	Loaded   stage.Event = "loaded"    // the copy is whole and compared
	Switched stage.Event = "switched"  // the copy is the clone
	Settled  stage.Event = "settled"   // its owner's log-in is proven, and nothing is left beside it
)

// Effects of the table.
const (
	RemoveRecord = "remove the record"
	OpenRecord   = "make the record active"
)

var (
	to       = stage.To
	canceled = to(stage.Canceling, stage.CloseAtAgent)
	refused  = to(stage.Failing, stage.CloseAtAgent)
)

// Machine is the machine of clones. Switching is the point of no return: from its intent on, the agent alone knows whether
// customers have the clone, and only its word leads back. Every way out either makes the clone's record active or removes it.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Making, Dumping, Loading, Switching, Settling, stage.Failing, stage.Canceling,
		stage.Succeeded, stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, stage.Cancel, Made, MadeBare, Dumped, Loaded, stage.Refused, stage.Busy, Switched, Settled,
		stage.Closed, stage.Completed,
	},
	Loading,
	stage.Moves{
		stage.Queued:    {stage.Advance: to(Making), stage.Cancel: to(stage.Canceled, RemoveRecord, stage.EmitEvent)},
		Making:          {Made: to(Loading), MadeBare: to(Dumping), stage.Cancel: canceled, stage.Refused: refused},
		Dumping:         {Dumped: to(Loading), stage.Cancel: canceled, stage.Refused: refused},
		Loading:         {Loaded: to(Switching, stage.CommitIntent), stage.Cancel: canceled, stage.Refused: refused},
		Switching:       {Switched: to(Settling), stage.Busy: to(Switching), stage.Refused: refused},
		Settling:        {Settled: to(stage.Succeeded, OpenRecord, stage.EmitEvent)},
		stage.Failing:   {stage.Closed: to(stage.Failed, RemoveRecord, stage.EmitEvent), stage.Completed: to(Switching)},
		stage.Canceling: {stage.Closed: to(stage.Canceled, RemoveRecord, stage.EmitEvent), stage.Completed: to(Switching)},
	}).Showing(Dumping, recovery.Stages...)
