package httpapi

import (
	"net/http"

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

func (a allowlistRoutes) routes() []Route {
	const list = databasesPath + "/{id}/network/allowlist"
	return []Route{
		{
			Name: "listAllowlistEntries", Summary: "List the networks that may connect to a database",
			Method: http.MethodGet, Path: list, Class: ratelimit.Read, Target: Database, Action: account.See, Handle: a.list,
			Answers: documented(http.StatusOK, wire.Data[[]wire.AllowlistEntry]{}),
		},
		{
			Name: "addAllowlistEntry", Summary: "Allow a network to connect to a database",
			Method: http.MethodPost, Path: list, Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Body: JSON[wire.AddAllowlistEntry](), Handle: a.add,
			Answers:  documented(http.StatusCreated, wire.Data[wire.AllowlistEntry]{}),
			Refusals: []fault.Code{fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "removeAllowlistEntry", Summary: "Remove a network from the allowlist of a database",
			Method: http.MethodDelete, Path: list + "/{entryId}", Class: ratelimit.Write, Target: Database, Action: account.Configure,
			Handle:   a.remove,
			Answers:  documented(http.StatusNoContent, nil),
			Refusals: []fault.Code{fault.AllowlistEntryNotFound, fault.DatabaseStateConflict, fault.AgentError, fault.ServerBusy},
		},
	}
}

func (a allowlistRoutes) list(r *Request) (Answer, error) {
	entries, err := a.use.List(r.Context(), r.database())
	return OK(wire.Data[[]wire.AllowlistEntry]{Data: mapped(entries, viewEntry)}), err
}

func (a allowlistRoutes) add(r *Request) (Answer, error) {
	body := Decoded[wire.AddAllowlistEntry](r)
	description := ""
	if body.Description != nil {
		description = *body.Description
	}
	entry, err := a.use.Add(r.Context(), r.database(), body.CIDR, description)
	return Created(wire.Data[wire.AllowlistEntry]{Data: viewEntry(entry)}), err
}

func (a allowlistRoutes) remove(r *Request) (Answer, error) {
	return NoContent(), a.use.Remove(r.Context(), r.database(), id.AllowlistEntryID(r.Param("entryId")))
}
