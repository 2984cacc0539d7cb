package deletion

import (
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
	return operation.StageOf(o, RecoveryStages, Rejoining)
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

var (
	recoveryTo       = machine.To[RecoveryStage]
	recoveryNever    = machine.Refuse[RecoveryStage](fault.InternalError)
	recoveryConflict = machine.Refuse[RecoveryStage](fault.DatabaseStateConflict)
)

// Recovery is the machine of recoveries. What a worker has begun can no longer be canceled: the agent may have let customers in.
var Recovery = machine.Table[RecoveryStage, RecoveryEvent]{
	RecoveryQueued: {
		RecoveryAdvance: recoveryTo(Rejoining), RecoveryCancel: recoveryTo(RecoveryCanceled, EmitEvent),
		Rejoined: recoveryNever, RecoveryRefused: recoveryNever, RecoveryClosed: recoveryNever,
		RecoveryCompleted: recoveryNever,
	},
	Rejoining: {
		RecoveryAdvance: recoveryTo(Rejoining), RecoveryCancel: recoveryConflict,
		Rejoined: recoveryTo(RecoverySucceeded, SetRecord, EmitEvent), RecoveryRefused: recoveryTo(RecoveryFailing),
		RecoveryClosed: recoveryNever, RecoveryCompleted: recoveryNever,
	},
	RecoveryFailing: {
		RecoveryAdvance: recoveryTo(RecoveryFailing), RecoveryCancel: recoveryConflict, Rejoined: recoveryNever,
		RecoveryRefused: recoveryNever, RecoveryClosed: recoveryTo(RecoveryFailed, EmitEvent),
		RecoveryCompleted: recoveryTo(Rejoining),
	},
	RecoverySucceeded: {
		RecoveryAdvance: recoveryNever, RecoveryCancel: recoveryConflict, Rejoined: recoveryNever,
		RecoveryRefused: recoveryNever, RecoveryClosed: recoveryNever, RecoveryCompleted: recoveryNever,
	},
	RecoveryFailed: {
		RecoveryAdvance: recoveryNever, RecoveryCancel: recoveryConflict, Rejoined: recoveryNever,
		RecoveryRefused: recoveryNever, RecoveryClosed: recoveryNever, RecoveryCompleted: recoveryNever,
	},
	RecoveryCanceled: {
		RecoveryAdvance: recoveryNever, RecoveryCancel: recoveryTo(RecoveryCanceled), Rejoined: recoveryNever,
		RecoveryRefused: recoveryNever, RecoveryClosed: recoveryNever, RecoveryCompleted: recoveryNever,
	},
}
