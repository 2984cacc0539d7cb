package rebuild

import (
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/stage"
)

// The stages of a rebuild, beside those of every operation.
const (
	Making    stage.Stage = "making"
	Dumping   stage.Stage = "dumping"       // the operation shows recovery.Stages first
	Adopting  stage.Stage = "adopting"      // the backup is taken over that the database is made from
	Loading               = restore.Loading // the operation shows one of restore.Parts
	Switching stage.Stage = "switching"
	Opening   stage.Stage = "opening"  // logins and roles are admitted
	Settling  stage.Stage = "settling" // the other backups are taken over
)

// The events of a rebuild.
const (
	Made     stage.Event = "made"      // the database stands, empty and closed; there is an archive
	MadeBare stage.Event = "made_bare" // the same without an archive
	Dumped   stage.Event = "dumped"    // there is a file
	Missing  stage.Event = "missing"   // the archive does not have the database
	Adopted  stage.Event = "adopted"   // the backup is here
	Loaded   stage.Event = "loaded"    // the copy is whole and compared
	Switched stage.Event = "switched"  // the copy is the database
	Opened   stage.Event = "opened"    // customers get in as before
	Settled  stage.Event = "settled"
)

// Effects of the table.
const (
	MoveBack  = "leave the record with the server that is gone"
	SetStatus = "set the record's status"
)

var (
	to      = stage.To
	refused = to(stage.Failing, stage.CloseAtAgent)
)

// Machine is the machine of rebuilds. Switching is the point of no return. Until then every way out leaves the record with the
// server that is gone, so that it can be ordered again.
var Machine = stage.New(
	[]stage.Stage{
		stage.Queued, Making, Dumping, Adopting, Loading, Switching, Opening, Settling, stage.Failing,
		stage.Succeeded, stage.Failed, stage.Canceled,
	},
	[]stage.Event{
		stage.Advance, stage.Cancel, Made, MadeBare, Dumped, Missing, Adopted, Loaded, stage.Refused, stage.Busy, Switched, Opened,
		Settled, stage.Closed, stage.Completed,
	},
	Loading,
	stage.Moves{
		stage.Queued:  {stage.Advance: to(Making), stage.Cancel: to(stage.Canceled, MoveBack, stage.EmitEvent)},
		Making:        {Made: to(Dumping), MadeBare: to(Adopting), stage.Refused: refused},
		Dumping:       {Dumped: to(Loading), Missing: to(Adopting), stage.Refused: refused},
		Adopting:      {Adopted: to(Loading), stage.Refused: refused},
		Loading:       {Loaded: to(Switching, stage.CommitIntent), stage.Refused: refused},
		Switching:     {Switched: to(Opening), stage.Busy: to(Switching), stage.Refused: refused},
		Opening:       {Opened: to(Settling, SetStatus)},
		Settling:      {Settled: to(stage.Succeeded, stage.EmitEvent)},
		stage.Failing: {stage.Closed: to(stage.Failed, MoveBack, stage.EmitEvent), stage.Completed: to(Switching)},
	}).Showing(Dumping, recovery.Stages...)
