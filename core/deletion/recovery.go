package deletion

import (
	"slices"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
	"github.com/pgherd/pgherd/core/operation"
)

// The kinds of operations about deleted databases.
const (
	KindDelete  operation.Kind = "delete"
	KindRecover operation.Kind = "recover"
	KindPurge   operation.Kind = "purge" // which the API does not show
)

// RecoveryStage is where a recovery stands.
type RecoveryStage string

// The stages of a recovery.
const (
	RecoveryQueued    RecoveryStage = operation.StageQueued
	Rejoining         RecoveryStage = "rejoining"
	RecoveryFailing   RecoveryStage = "failing"
	RecoverySucceeded RecoveryStage = RecoveryStage(operation.Succeeded)
	RecoveryFailed    RecoveryStage = RecoveryStage(operation.Failed)
	RecoveryCanceled  RecoveryStage = RecoveryStage(operation.Canceled)
)

// RecoveryStages lists them in the order of the docs.
var RecoveryStages = []RecoveryStage{
	RecoveryQueued, Rejoining, RecoveryFailing, RecoverySucceeded, RecoveryFailed, RecoveryCanceled,
}

// RecoveryOf is the stage of an operation that recovers a database.
func RecoveryOf(o operation.Operation) RecoveryStage {
	stage := RecoveryStage(o.Stage)
	if o.Status.Final() {
		stage = RecoveryStage(o.Status)
	}
	if slices.Contains(RecoveryStages, stage) {
		return stage
	}
	return Rejoining
}

// RecoveryEvent is what happens to a recovery.
type RecoveryEvent string

// The events of a recovery.
const (
	RecoveryAdvance   RecoveryEvent = "advance"
	RecoveryCancel    RecoveryEvent = "cancel"
	Rejoined          RecoveryEvent = "rejoined"  // the database is in service
	RecoveryRefused   RecoveryEvent = "refused"   // by the agent for good
	RecoveryClosed    RecoveryEvent = "closed"    // at the agent: the database is isolated
	RecoveryCompleted RecoveryEvent = "completed" // the agent says that it cannot be closed, as the database is in service
)

// RecoveryEvents lists them in the order of the docs.
var RecoveryEvents = []RecoveryEvent{
	RecoveryAdvance, RecoveryCancel, Rejoined, RecoveryRefused, RecoveryClosed, RecoveryCompleted,
}

type (
	recoveryCell  = machine.Cell[RecoveryStage]
	recoveryCells = map[RecoveryEvent]recoveryCell
)

var (
	recoveryTo       = machine.To[RecoveryStage]
	recoveryConflict = machine.Refuse[RecoveryStage](fault.DatabaseStateConflict)
)

// Recovery is the machine of recoveries. What a worker has begun can no longer be canceled: the agent may have let customers in.
var Recovery = machine.Table[RecoveryStage, RecoveryEvent]{
	RecoveryQueued: row(RecoveryEvents, recoveryCells{
		RecoveryAdvance: recoveryTo(Rejoining), RecoveryCancel: recoveryTo(RecoveryCanceled, EmitEvent),
	}),
	Rejoining: row(RecoveryEvents, recoveryCells{
		RecoveryAdvance: recoveryTo(Rejoining), RecoveryCancel: recoveryConflict,
		Rejoined: recoveryTo(RecoverySucceeded, SetRecord, EmitEvent), RecoveryRefused: recoveryTo(RecoveryFailing),
	}),
	RecoveryFailing: row(RecoveryEvents, recoveryCells{
		RecoveryAdvance: recoveryTo(RecoveryFailing), RecoveryCancel: recoveryConflict,
		RecoveryClosed: recoveryTo(RecoveryFailed, EmitEvent), RecoveryCompleted: recoveryTo(Rejoining),
	}),
	RecoverySucceeded: row(RecoveryEvents, recoveryCells{RecoveryCancel: recoveryConflict}),
	RecoveryFailed:    row(RecoveryEvents, recoveryCells{RecoveryCancel: recoveryConflict}),
	RecoveryCanceled:  row(RecoveryEvents, recoveryCells{RecoveryCancel: recoveryTo(RecoveryCanceled)}),
}

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
func PurgeOf(o operation.Operation) PurgeStage {
	if o.Status.Final() {
		return PurgeStage(o.Status)
	}
	if stage := PurgeStage(o.Stage); slices.Contains(PurgeStages, stage) {
		return stage
	}
	return Erasing
}

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

type purgeCells = map[PurgeEvent]machine.Cell[PurgeStage]

var purgeTo = machine.To[PurgeStage]

// Purge is the machine of purges.
var Purge = machine.Table[PurgeStage, PurgeEvent]{
	PurgeQueued: row(PurgeEvents, purgeCells{PurgeAdvance: purgeTo(Erasing)}),
	Erasing:     row(PurgeEvents, purgeCells{PurgeAdvance: purgeTo(Erasing), Erased: purgeTo(Removing)}),
	Removing:    row(PurgeEvents, purgeCells{PurgeAdvance: purgeTo(Removing), Removed: purgeTo(Purged, DropRecord)}),
	Purged:      row(PurgeEvents, purgeCells{}),
}
