package httpapi

import (
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/id"
)

type activityView struct {
	ID      id.AuditID    `json:"id" format:"uuid"`
	At      time.Time     `json:"at"`
	Actor   audit.Actor   `json:"actor"`
	Action  audit.Action  `json:"action"`
	Details audit.Details `json:"details"`
}

func viewActivity(e audit.Entry) activityView {
	return activityView{ID: e.ID, At: instant(e.At), Actor: e.Actor, Action: e.Action, Details: e.Details}
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
