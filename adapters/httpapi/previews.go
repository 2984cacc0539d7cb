package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/ratelimit"
)

const refParameter = "ref"

type previewRoutes struct{ use *previews.Previews }

func (r *Request) preview() previews.Reached { return r.Target.(previews.Reached) }

func viewPreview(p preview.Preview) wire.Preview {
	return wire.Preview{
		DatabaseID: p.DatabaseID, NamespaceID: p.NamespaceID, Ref: p.Ref, LeaseStatus: p.Lease.Shown(),
		LeaseGeneration: p.Generation, ExpiresAt: instant(p.ExpiresAt), ScheduledBackup: p.Schedule,
		RecoveryDeadline: instantOrNull(p.RecoveryDeadline),
	}
}

func (x previewRoutes) routes() []Route {
	const (
		all = keyed + "/previews"
		one = all + "/{databaseId}"
	)
	rows := []Route{
		{
			Name: "createPreview", Summary: "Make the preview database of a ref, for synthetic test data only, or get the one that it has",
			Method: http.MethodPost, Path: all, Class: ratelimit.Create, PlanRefusal: fault.PlanLimit,
			Body: JSON[wire.CreatePreview](), NoStore: true, Repeatable: true, Handle: x.create,
			Answers: []Documented{
				{Status: http.StatusCreated, Body: wire.CreatedPreview{}, Meaning: "It was made"},
				{Status: http.StatusOK, Body: wire.CreatedPreview{}, Meaning: "The ref had it"},
			},
			Refusals: []fault.Code{fault.PreviewConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "findPreview", Summary: "Find the preview database that a ref has; a deleted one is not found",
			Method: http.MethodGet, Path: all, Class: ratelimit.Read, Handle: x.find,
			Query:    []Parameter{{Name: refParameter, Meaning: "as it was given to make the preview", Longest: preview.MostRef}},
			Answers:  documented(http.StatusOK, wire.Data[wire.Preview]{}),
			Refusals: []fault.Code{fault.PreviewNotFound},
		},
		{
			Name: "getPreview", Summary: "Get a preview database, also a deleted one",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Preview, Handle: x.get,
			Answers: documented(http.StatusOK, wire.Data[wire.Preview]{}),
		},
		{
			Name: "extendPreview", Summary: "Renew the lease of a preview database",
			Method: http.MethodPost, Path: one + "/extend", Class: ratelimit.Write, Target: Preview,
			Body: JSON[wire.ExtendPreview](), Handle: x.extend,
			Answers:  documented(http.StatusOK, wire.Data[wire.Preview]{}),
			Refusals: []fault.Code{fault.PreviewLeaseEnded},
		},
		{
			Name: "setPreviewBackupPolicy", Summary: "Choose whether the service makes daily backups of a preview database",
			Method: http.MethodPatch, Path: one + "/backup-policy", Class: ratelimit.Write, Target: Preview,
			Body: JSON[wire.SetBackupPolicy](), Handle: x.setBackup,
			Answers:  documented(http.StatusOK, wire.Data[wire.Preview]{}),
			Refusals: []fault.Code{fault.PreviewConflict},
		},
		{
			Name: "deletePreview", Summary: "Delete a preview database; its deletion backup is made first",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Preview, Handle: x.remove,
			Answers:  documented(http.StatusAccepted, wire.DataWithMessage[wire.Preview]{}),
			Refusals: []fault.Code{fault.PreviewConflict},
		},
	}
	for i := range rows {
		rows[i].Key = PreviewKey
	}
	return rows
}

func (x previewRoutes) create(r *Request) (Answer, error) {
	b := Decoded[wire.CreatePreview](r)
	o, err := x.use.Open(r.Context(), r.Caller, previews.Request{
		Ref: b.Ref, TTLHours: b.TTLHours, ScheduledBackup: b.ScheduledBackup,
	})
	made := viewMade(o.Made)
	answer := OK(wire.CreatedPreview{Data: viewPreview(o.Preview), Connection: wire.PreviewConnection{
		Host: made.Host, Port: made.Port, Database: made.Database.Database, Username: made.Username,
		Password: made.Password, ConnectionString: made.ConnectionString,
	}})
	if o.Fresh {
		answer.Status = http.StatusCreated
	}
	return answer, err
}

// find has a missing ref refused as an empty one is.
func (x previewRoutes) find(r *Request) (Answer, error) {
	ref, _, err := r.query(refParameter)
	if err != nil {
		return Answer{}, err
	}
	found, err := x.use.ReachRef(r.Context(), r.Caller, ref)
	if err != nil {
		return Answer{}, err
	}
	return shown(x.use.Get(r.Context(), found))
}

func (x previewRoutes) get(r *Request) (Answer, error) {
	return shown(x.use.Get(r.Context(), r.preview()))
}

func (x previewRoutes) extend(r *Request) (Answer, error) {
	return shown(x.use.Extend(r.Context(), r.preview(), Decoded[wire.ExtendPreview](r).TTLHours))
}

func (x previewRoutes) setBackup(r *Request) (Answer, error) {
	return shown(x.use.SetSchedule(r.Context(), r.preview(), Decoded[wire.SetBackupPolicy](r).ScheduledBackup))
}

func (x previewRoutes) remove(r *Request) (Answer, error) {
	p, err := x.use.Delete(r.Context(), r.preview())
	message := "The preview is being deleted."
	switch p.Lease { //nolint:exhaustive // a deletion leads to no other
	case preview.Deleted:
		message = "The preview is deleted."
	case preview.Expired:
		message = "The preview is deleted as soon as what is done to it has ended."
	}
	return Accepted(wire.DataWithMessage[wire.Preview]{Message: message, Data: viewPreview(p)}), err
}

func shown(p preview.Preview, err error) (Answer, error) {
	return OK(wire.Data[wire.Preview]{Data: viewPreview(p)}), err
}
