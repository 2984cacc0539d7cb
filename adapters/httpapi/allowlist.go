package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

func viewEntry(e database.AllowlistEntry) wire.AllowlistEntry {
	return wire.AllowlistEntry{ID: e.ID, CIDR: e.CIDR, Description: e.Description, CreatedAt: instant(e.CreatedAt)}
}

type allowlist struct{ use *controlplane.Allowlist }

func (a allowlist) list(r *Request) (Answer, error) {
	entries, err := a.use.List(r.Context(), r.reached())
	if err != nil {
		return Answer{}, err
	}
	return OK(wire.Data[[]wire.AllowlistEntry]{Data: mapped(entries, viewEntry)}), nil
}

func (a allowlist) add(r *Request) (Answer, error) {
	body := Decoded[wire.AddAllowlistEntry](r)
	network, err := database.ParseCIDR(body.CIDR)
	if err != nil {
		return Answer{}, err
	}
	description := ""
	if body.Description != nil {
		if description, err = database.ValidateDescription(*body.Description); err != nil {
			return Answer{}, err
		}
	}
	entry, err := a.use.Add(r.Context(), r.reached(), network, description)
	if err != nil {
		return Answer{}, err
	}
	return Created(wire.Data[wire.AllowlistEntry]{Data: viewEntry(entry)}), nil
}

func (a allowlist) remove(r *Request) (Answer, error) {
	return NoContent(), a.use.Remove(r.Context(), r.reached(), id.AllowlistEntryID(r.Param("entryId")))
}
