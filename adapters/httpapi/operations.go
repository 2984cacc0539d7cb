package httpapi

import (
	"encoding/json"
	"time"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
)

// operationView is the spec's operation with additional fields of this service.
type operationView struct {
	ID         id.OperationID     `json:"id" format:"uuid"`
	Type       operation.Kind     `json:"type" enum:"backup,restore,clone,delete,recover,extension"`
	Status     operation.Status   `json:"status" enum:"queued,running,succeeded,failed,canceled"`
	Stage      string             `json:"stage"`
	Progress   int                `json:"progress"`
	Result     *json.RawMessage   `json:"result"`
	Error      *operation.Failure `json:"error"`
	DatabaseID id.DatabaseID      `json:"databaseId" format:"uuid"`
	CreatedAt  time.Time          `json:"createdAt"`
	StartedAt  *time.Time         `json:"startedAt"`
	FinishedAt *time.Time         `json:"finishedAt"`
}

// started is the answer to an asynchronous request.
type started struct {
	Message   string        `json:"message"`
	Operation operationView `json:"operation"`
}

func viewOperation(o operation.Operation) operationView {
	v := operationView{
		ID: o.ID, Type: o.Kind, Status: o.Status, Stage: o.Stage, Progress: o.Progress, Error: o.Failure(),
		DatabaseID: o.DatabaseID, CreatedAt: instant(o.CreatedAt),
		StartedAt: instantOrNull(o.StartedAt), FinishedAt: instantOrNull(o.FinishedAt),
	}
	if len(o.Result) > 0 {
		v.Result = &o.Result
	}
	return v
}

type operations struct{ use *controlplane.Operations }

func (o operations) list(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	list, next, err := o.use.List(r.Context(), r.reached(), page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(list, viewOperation, next), nil
}

func (o operations) get(r *Request) (Answer, error) {
	return OK(viewOperation(r.Target.(controlplane.ReachedOperation).Operation())), nil
}

func (o operations) cancel(r *Request) (Answer, error) {
	work, err := o.use.Cancel(r.Context(), r.Target.(controlplane.ReachedOperation))
	if err != nil {
		return Answer{}, err
	}
	if work.Status == operation.Canceled {
		return OK(started{"The operation is canceled.", viewOperation(work)}), nil
	}
	return Accepted(started{"The operation is being canceled.", viewOperation(work)}), nil
}
