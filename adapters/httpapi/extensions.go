package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
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

func (x extensionRoutes) routes() []serve.Route {
	const (
		catalog = databasesPath + "/{id}/extensions"
		all     = catalog + "/operations"
		one     = all + "/{operationId}"
	)
	rows := []serve.Route{
		{
			Name: "listExtensions", Summary: "List the PostgreSQL extensions of a database",
			Method: http.MethodGet, Path: catalog, Class: ratelimit.Read, Action: account.See, Work: serve.OK(x.list),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy},
		},
		{
			Name: "changeExtension", Summary: "Install or upgrade a PostgreSQL extension",
			Method: http.MethodPost, Path: all, Class: ratelimit.Write, Action: account.Configure,
			Body: serve.JSON[wire.ChangeExtension](), Idempotency: serve.Required, Work: x.change(),
			Refusals: []fault.Code{
				fault.ExtensionMutationUnavailable, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "getExtensionOperation", Summary: "Get an operation on an extension, and check its progress",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Action: account.See, Work: serve.OK(x.get),
			Refusals: []fault.Code{fault.OperationNotFound},
		},
	}
	for i := range rows {
		rows[i].Target, rows[i].Gate, rows[i].NoStore, rows[i].BareMaintenance = Database, rollout.ExtensionCatalog, true, true
	}
	return rows
}

func (x extensionRoutes) list(r *serve.Request) (wire.Data[[]wire.Extension], error) {
	entries, err := x.use.Catalog(r.Context(), databaseOf(r))
	return wire.Data[[]wire.Extension]{Data: mapped(entries, viewExtension)}, err
}

func (x extensionRoutes) change() serve.Work {
	work := serve.DoneOrPending(
		"The operation has ended: the request was made before.", "The operation is queued or running.", x.start)
	for i := range work.Answers {
		work.Answers[i].Location = "Where to read the operation"
	}
	answer := work.Handle
	work.Handle = func(r *serve.Request) (serve.Answer, error) {
		a, err := answer(r)
		o := a.Body.(wire.ExtensionOperation)
		a.Location = databasesPath + "/" + string(o.DatabaseID) + "/extensions/operations/" + string(o.ID)
		return a, err
	}
	return work
}

func (x extensionRoutes) start(r *serve.Request) (_ wire.ExtensionOperation, isDone bool, _ error) {
	body := serve.Decoded[wire.ChangeExtension](r)
	o, err := x.use.Start(r.Context(), databaseOf(r), extension.Request{
		Extension: body.Extension, Change: body.Kind, Key: r.Key,
	})
	if err != nil {
		return wire.ExtensionOperation{}, false, err
	}
	view, err := viewExtensionOperation(o)
	return view, o.Status.Final(), err
}

func (x extensionRoutes) get(r *serve.Request) (wire.ExtensionOperation, error) {
	o, err := x.use.Status(r.Context(), databaseOf(r), operationOf(r))
	if err != nil {
		return wire.ExtensionOperation{}, err
	}
	return viewExtensionOperation(o)
}
