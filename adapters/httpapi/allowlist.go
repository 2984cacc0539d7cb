package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

type entryView struct {
	ID          id.AllowlistEntryID `json:"id" format:"uuid"`
	CIDR        string              `json:"cidr"`
	Description string              `json:"description"`
	CreatedAt   time.Time           `json:"createdAt"`
}

func viewEntry(e database.AllowlistEntry) entryView {
	return entryView{ID: e.ID, CIDR: e.CIDR, Description: e.Description, CreatedAt: instant(e.CreatedAt)}
}

type entryBody struct {
	CIDR        *string `json:"cidr" required:"true" doc:"an IPv4 or IPv6 network or address"`
	Description *string `json:"description"`
}

type allowlist struct{ use *controlplane.Allowlist }

func (a allowlist) list(r *Request) (Answer, error) {
	entries, err := a.use.List(r.Context(), r.reached())
	if err != nil {
		return Answer{}, err
	}
	return OK(data[[]entryView]{mapped(entries, viewEntry)}), nil
}

func (a allowlist) add(r *Request) (Answer, error) {
	body := Decoded[entryBody](r)
	network, err := database.ParseCIDR(*body.CIDR)
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
	return Created(data[entryView]{viewEntry(entry)}), nil
}

func (a allowlist) remove(r *Request) (Answer, error) {
	return NoContent(), a.use.Remove(r.Context(), r.reached(), id.AllowlistEntryID(r.Param("entryId")))
}
