package operation

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// Status is the status of an operation (spec, "Operation status").
type Status string

// The statuses.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded" // final
	Failed    Status = "failed"    // final
	Canceled  Status = "canceled"  // final
)

// Statuses lists every status in the order of the docs.
var Statuses = []Status{Queued, Running, Succeeded, Failed, Canceled}

// Values lists them for the API's description.
func (Status) Values() []Status { return Statuses }

// Final reports whether the operation has ended. An event is emitted exactly when a final status is reached.
func (s Status) Final() bool { return s == Succeeded || s == Failed || s == Canceled }

// Event is what happens to an operation.
type Event string

// The events.
const (
	Claim         Event = "claim"          // a worker takes or retakes it, with a higher epoch
	Succeed       Event = "succeed"        // the agent has confirmed the outcome
	Fail          Event = "fail"           // the agent has recorded the operation closed
	RequestCancel Event = "request_cancel" // a user asks
	ConfirmCancel Event = "confirm_cancel" // the agent has recorded the operation closed
)

// Events lists every event in the order of the docs.
var Events = []Event{Claim, Succeed, Fail, RequestCancel, ConfirmCancel}

// Effects of the table.
const (
	RaiseEpoch   = "raise epoch"
	EmitEvent    = "emit event"
	CloseAtAgent = "close at agent"
)

var (
	to       = machine.To[Status]
	conflict = machine.Refuse[Status](fault.DatabaseStateConflict)
)

// Transitions is the status machine. A running operation is canceled in two steps: the request is recorded, then the worker has
// the agent close the operation. Whether a running operation may be canceled at all depends on its kind: see Spec.
var Transitions = machine.Table[Status, Event]{
	Queued: {
		Claim: to(Running, RaiseEpoch), Succeed: conflict, Fail: conflict,
		RequestCancel: to(Canceled, EmitEvent), ConfirmCancel: conflict,
	},
	Running: {
		Claim: to(Running, RaiseEpoch), Succeed: to(Succeeded, EmitEvent), Fail: to(Failed, EmitEvent),
		RequestCancel: to(Running, CloseAtAgent), ConfirmCancel: to(Canceled, EmitEvent),
	},
	Succeeded: {Claim: conflict, Succeed: conflict, Fail: conflict, RequestCancel: conflict, ConfirmCancel: conflict},
	Failed:    {Claim: conflict, Succeed: conflict, Fail: conflict, RequestCancel: conflict, ConfirmCancel: conflict},
	Canceled:  {Claim: conflict, Succeed: conflict, Fail: conflict, RequestCancel: to(Canceled), ConfirmCancel: conflict},
}

// Ended returns the operation as it becomes final, with the result of one that succeeded or the cause of one that failed, and
// without its sealed input, which nobody needs any more.
func (o Operation) Ended(on Event, now time.Time, result json.RawMessage, cause *fault.Error) (Operation, error) {
	cell, err := Transitions.Decide(o.Status, on)
	if err != nil {
		return o, err
	}
	o.Status, o.FinishedAt, o.Until, o.Stage, o.Result = cell.Next, &now, nil, StageFinished, result
	o.BytesDone, o.BytesTotal, o.SealedInput = 0, 0, nil
	if o.Status == Succeeded {
		o.Progress, o.ErrorCode, o.ErrorText = 100, "", ""
	}
	if cause != nil {
		o.ErrorCode, o.ErrorText = cause.Code, cause.Message
	}
	return o, nil
}
