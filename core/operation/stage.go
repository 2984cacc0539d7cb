package operation

import "github.com/pgherd/pgherd/core/fault"

// Stages that every kind has; the others belong to their flows.
const (
	StageQueued   = "queued"
	StageFinished = "finished"
)

// Enter moves an operation to a stage, with the cause of one in which it fails; nil: it does not fail there, whatever it was
// about to fail with.
func (o *Operation) Enter(stage string, cause *fault.Error) {
	o.Stage, o.BytesDone, o.BytesTotal, o.ErrorCode, o.ErrorText = stage, 0, 0, "", ""
	if cause != nil {
		o.ErrorCode, o.ErrorText = cause.Code, cause.Message
	}
}
