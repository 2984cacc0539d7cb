package httpapi

import (
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
)

func viewActivity(e audit.Entry) wire.Activity {
	return wire.Activity{ID: e.ID, At: instant(e.At), Actor: e.Actor, Action: e.Action, Details: e.Details}
}

type activity struct{ use *controlplane.Activity }

func (a activity) list(r *Request) (Answer, error) {
	page, err := r.Page()
	if err != nil {
		return Answer{}, err
	}
	entries, next, err := a.use.List(r.Context(), r.reached(), page)
	if err != nil {
		return Answer{}, err
	}
	return Paged(entries, viewActivity, next), nil
}
