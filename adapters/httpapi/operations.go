package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewOperation(o operation.Operation) wire.Operation {
	v := wire.Operation{
		ID: o.ID, Type: o.Kind, Status: o.Status, Stage: o.Stage, Progress: o.Progress,
		DatabaseID: o.DatabaseID, CreatedAt: instant(o.CreatedAt),
		StartedAt: instantOrNull(o.StartedAt), FinishedAt: instantOrNull(o.FinishedAt),
	}
	if o.Status == operation.Running && o.BytesTotal > 0 {
		v.ProgressBytes = &wire.Bytes{Done: o.BytesDone, Total: o.BytesTotal}
	}
	if len(o.Result) > 0 {
		v.Result = &o.Result
	}
	if o.Status == operation.Failed { // what it is about to fail with may turn out otherwise
		v.Error = o.Failure()
	}
	return v
}

type operationRoutes struct{ use *operations.Operations }

func (o operationRoutes) routes() []serve.Route {
	const one = keyed + "/operations/{id}"
	return []serve.Route{
		{
			Name: "listOperations", Summary: "List the operations of a database, newest first",
			Method: http.MethodGet, Path: databasesPath + "/{id}/operations", Class: ratelimit.Read,
			Target: Database, Action: account.See, Work: serve.Paged(serve.LongList, databaseOf, o.use.List, viewOperation),
		},
		{
			Name: "getOperation", Summary: "Get an operation",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Operation, Action: account.See, Work: serve.OK(o.get),
		},
		{
			Name: "cancelOperation", Summary: "Cancel an operation",
			Method: http.MethodPost, Path: one + "/cancel", Class: ratelimit.Write, Target: Operation, Action: account.See,
			Work:     serve.DoneOrPending("The operation is canceled.", "The operation is running, and will be canceled.", o.cancel),
			Refusals: []fault.Code{fault.Forbidden, fault.DatabaseStateConflict},
		},
	}
}

func (o operationRoutes) get(r *serve.Request) (wire.Operation, error) {
	return viewOperation(r.Target.(operations.Reached).Operation()), nil
}

func (o operationRoutes) cancel(r *serve.Request) (_ wire.OperationWithMessage, isDone bool, _ error) {
	work, err := o.use.Cancel(r.Context(), r.Target.(operations.Reached))
	if work.Status == operation.Canceled {
		return wire.OperationWithMessage{Message: "The operation is canceled.", Operation: viewOperation(work)}, true, err
	}
	return wire.OperationWithMessage{Message: "The operation is being canceled.", Operation: viewOperation(work)}, false, err
}

// queued is work that starts an operation, with a message that says so.
func queued(message string, start func(*serve.Request) (operation.Operation, error)) serve.Work {
	return serve.Accepted(func(r *serve.Request) (wire.OperationWithMessage, error) {
		o, err := start(r)
		return wire.OperationWithMessage{Message: message, Operation: viewOperation(o)}, err
	})
}
