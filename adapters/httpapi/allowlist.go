package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewEntry(e database.AllowlistEntry) wire.AllowlistEntry {
	return wire.AllowlistEntry{ID: e.ID, CIDR: e.CIDR, Description: e.Description, CreatedAt: instant(e.CreatedAt)}
}

type allowlistRoutes struct{ use *databases.Allowlist }

func (a allowlistRoutes) routes() []serve.Route {
	const list = databasesPath + "/{id}/network/allowlist"
	return []serve.Route{
		{
			Name: "listAllowlistEntries", Summary: "List the networks that may connect to a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Target: Database, Action: account.See, Work: serve.OK(a.list),
		},
		{
			Name: "addAllowlistEntry", Summary: "Allow a network to connect to a database",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: serve.JSON[wire.AddAllowlistEntry](), Work: serve.Created(a.add),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "removeAllowlistEntry", Summary: "Remove a network from the allowlist of a database",
			Method: http.MethodDelete, Path: list + "/{entryId}", Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Work:     serve.Empty(a.remove),
			Refusals: []fault.Code{fault.AllowlistEntryNotFound, fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
	}
}

func (a allowlistRoutes) list(r *serve.Request) (wire.Data[[]wire.AllowlistEntry], error) {
	entries, err := a.use.List(r.Context(), databaseOf(r))
	return wire.Data[[]wire.AllowlistEntry]{Data: mapped(entries, viewEntry)}, err
}

func (a allowlistRoutes) add(r *serve.Request) (wire.Data[wire.AllowlistEntry], error) {
	body := serve.Decoded[wire.AddAllowlistEntry](r)
	description := ""
	if body.Description != nil {
		description = *body.Description
	}
	entry, err := a.use.Add(r.Context(), databaseOf(r), body.CIDR, description)
	return wire.Data[wire.AllowlistEntry]{Data: viewEntry(entry)}, err
}

func (a allowlistRoutes) remove(r *serve.Request) error {
	return a.use.Remove(r.Context(), databaseOf(r), id.AllowlistEntryID(r.Param("entryId")))
}
