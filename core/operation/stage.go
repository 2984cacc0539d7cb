package operation

import (
	"slices"

	"github.com/pgherd/pgherd/core/fault"
)

// Stages that every kind has; the others belong to their flows.
const (
	StageQueued   = "queued"
	StageFinished = "finished"
)

// StageOf is where an operation stands among the stages of its kind, the last of which are named as the final statuses. An
// operation that shows something else, such as what its agent is at, is in the stage working.
func StageOf[S ~string](o Operation, stages []S, working S) S {
	stage := S(o.Stage)
	if o.Status.Final() {
		stage = S(o.Status)
	}
	if slices.Contains(stages, stage) {
		return stage
	}
	return working
}

// Enter moves an operation to a stage, with the cause of one in which it fails; nil: it does not fail there, whatever it was
// about to fail with.
func (o *Operation) Enter(stage string, cause *fault.Error) {
	o.Stage, o.BytesDone, o.BytesTotal, o.ErrorCode, o.ErrorText = stage, 0, 0, "", ""
	if cause != nil {
		o.ErrorCode, o.ErrorText = cause.Code, cause.Message
	}
}
