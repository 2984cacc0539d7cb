package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/extensions"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

func viewExtension(e extension.Entry) wire.Extension {
	return wire.Extension{
		Name: e.Name, Available: e.Available, Trusted: e.Trusted, RestoreQualified: e.RestoreQualified,
		DefaultVersion: e.DefaultVersion, InstalledVersion: nullIfZero(e.InstalledVersion), Schema: nullIfZero(e.Schema),
	}
}

func viewExtensionOperation(o operation.Operation) (wire.ExtensionOperation, error) {
	input, err := operation.Decode[extension.Input](o.Input)
	return wire.ExtensionOperation{Operation: viewOperation(o), IdempotencyKey: string(input.IdempotencyKey)}, err
}

type extensionRoutes struct{ use *extensions.Extensions }

func (x extensionRoutes) routes() []Route {
	const (
		catalog = databasesPath + "/{id}/extensions"
		all     = catalog + "/operations"
		one     = all + "/{operationId}"
	)
	changes := doneOrPending(wire.ExtensionOperation{},
		"The operation has ended: the request was made before.", "The operation is queued or running.")
	for i := range changes {
		changes[i].Location = "Where to read the operation"
	}
	rows := []Route{
		{
			Name: "listExtensions", Summary: "List the PostgreSQL extensions of a database",
			Method: http.MethodGet, Path: catalog, Class: ratelimit.Read, Action: account.See, Handle: x.list,
			Answers:  documented(http.StatusOK, wire.Data[[]wire.Extension]{}),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy},
		},
		{
			Name: "changeExtension", Summary: "Install or upgrade a PostgreSQL extension",
			Method: http.MethodPost, Path: all, Class: ratelimit.Write, Action: account.Configure,
			Body: JSON[wire.ChangeExtension](), Idempotency: Required, Handle: x.change,
			Answers: changes,
			Refusals: []fault.Code{
				fault.ExtensionMutationUnavailable, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "getExtensionOperation", Summary: "Get an operation on an extension, and check its progress",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Action: account.See, Handle: x.get,
			Answers:  documented(http.StatusOK, wire.ExtensionOperation{}),
			Refusals: []fault.Code{fault.OperationNotFound},
		},
	}
	for i := range rows {
		rows[i].Target, rows[i].Gate, rows[i].NoStore, rows[i].BareMaintenance = Database, rollout.ExtensionCatalog, true, true
	}
	return rows
}

func (x extensionRoutes) list(r *Request) (Answer, error) {
	entries, err := x.use.Catalog(r.Context(), r.database())
	return OK(wire.Data[[]wire.Extension]{Data: mapped(entries, viewExtension)}), err
}

func (x extensionRoutes) change(r *Request) (Answer, error) {
	body := Decoded[wire.ChangeExtension](r)
	o, err := x.use.Start(r.Context(), r.database(), extension.Request{
		Extension: body.Extension, Change: body.Kind, Key: r.Key,
	})
	if err != nil {
		return Answer{}, err
	}
	view, err := viewExtensionOperation(o)
	answer := Accepted(view)
	if o.Status.Final() {
		answer = OK(view)
	}
	answer.Location = databasesPath + "/" + string(o.DatabaseID) + "/extensions/operations/" + string(o.ID)
	return answer, err
}

func (x extensionRoutes) get(r *Request) (Answer, error) {
	o, err := x.use.Status(r.Context(), r.database(), r.operationID())
	if err != nil {
		return Answer{}, err
	}
	view, err := viewExtensionOperation(o)
	return OK(view), err
}
