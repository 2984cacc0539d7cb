package deletion

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// PurgeStage is where a purge stands. It has no way back, and no end but its own.
type PurgeStage string

// The stages of a purge.
const (
	PurgeQueued PurgeStage = operation.StageQueued
	Erasing     PurgeStage = "erasing"
	Removing    PurgeStage = "removing"
	Purged      PurgeStage = PurgeStage(operation.Succeeded)
)

// PurgeStages lists them in the order of the docs.
var PurgeStages = []PurgeStage{PurgeQueued, Erasing, Removing, Purged}

// PurgeOf is the stage of an operation that purges a database.
func PurgeOf(o operation.Operation) PurgeStage { return operation.StageOf(o, PurgeStages, Erasing) }

// PurgeEvent is what happens to a purge.
type PurgeEvent string

// The events of a purge.
const (
	PurgeAdvance PurgeEvent = "advance"
	Erased       PurgeEvent = "erased"  // no file of a backup is left, and no record of one
	Removed      PurgeEvent = "removed" // nothing is left on the server
)

// PurgeEvents lists them in the order of the docs.
var PurgeEvents = []PurgeEvent{PurgeAdvance, Erased, Removed}

var (
	purgeTo    = machine.To[PurgeStage]
	purgeNever = machine.Refuse[PurgeStage](fault.InternalError)
)

// Purge is the machine of purges.
var Purge = machine.Table[PurgeStage, PurgeEvent]{
	PurgeQueued: {
		PurgeAdvance: purgeTo(Erasing), Erased: purgeNever, Removed: purgeNever,
	},
	Erasing: {
		PurgeAdvance: purgeTo(Erasing), Erased: purgeTo(Removing), Removed: purgeNever,
	},
	Removing: {
		PurgeAdvance: purgeTo(Removing), Erased: purgeNever, Removed: purgeTo(Purged, DropRecord),
	},
	Purged: {
		PurgeAdvance: purgeNever, Erased: purgeNever, Removed: purgeNever,
	},
}
