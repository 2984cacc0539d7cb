package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/ratelimit"
)

const refParameter = "ref"

type previewRoutes struct{ use *previews.Previews }

func previewOf(r *serve.Request) previews.Reached { return r.Target.(previews.Reached) }

func viewPreview(p preview.Preview) wire.Preview {
	return wire.Preview{
		DatabaseID: p.DatabaseID, NamespaceID: p.NamespaceID, Ref: p.Ref, LeaseStatus: p.Lease.Shown(),
		LeaseGeneration: p.Generation, ExpiresAt: instant(p.ExpiresAt), ScheduledBackup: p.Schedule,
		RecoveryDeadline: instantOrNull(p.RecoveryDeadline),
	}
}

func (x previewRoutes) routes() []serve.Route {
	const (
		all = keyed + "/previews"
		one = all + "/{databaseId}"
	)
	rows := []serve.Route{
		{
			Name: "createPreview", Summary: "Make the preview database of a ref, for synthetic test data only, or get the one that it has",
			Method: http.MethodPost, Path: all, Class: ratelimit.Create, PlanRefusal: fault.PlanLimit,
			Body: serve.JSON[wire.CreatePreview](), NoStore: true, Repeatable: true, Work: x.create(),
			Refusals: []fault.Code{fault.PreviewConflict, fault.AgentError, fault.ServerBusy},
		},
		{
			Name: "findPreview", Summary: "Find the preview database that a ref has; a deleted one is not found",
			Method: http.MethodGet, Path: all, Class: ratelimit.Read, Work: serve.OK(x.find),
			Query:    []serve.Parameter{{Name: refParameter, Meaning: "as it was given to make the preview", Longest: preview.MostRef}},
			Refusals: []fault.Code{fault.PreviewNotFound},
		},
		{
			Name: "getPreview", Summary: "Get a preview database, also a deleted one",
			Method: http.MethodGet, Path: one, Class: ratelimit.Read, Target: Preview, Work: serve.OK(x.get),
		},
		{
			Name: "extendPreview", Summary: "Renew the lease of a preview database",
			Method: http.MethodPost, Path: one + "/extend", Class: ratelimit.Write, Target: Preview,
			Body: serve.JSON[wire.ExtendPreview](), Work: serve.OK(x.extend),
			Refusals: []fault.Code{fault.PreviewLeaseEnded},
		},
		{
			Name: "setPreviewBackupPolicy", Summary: "Choose whether the service makes daily backups of a preview database",
			Method: http.MethodPatch, Path: one + "/backup-policy", Class: ratelimit.Write, Target: Preview,
			Body: serve.JSON[wire.SetBackupPolicy](), Work: serve.OK(x.setBackup),
			Refusals: []fault.Code{fault.PreviewConflict},
		},
		{
			Name: "deletePreview", Summary: "Delete a preview database; its deletion backup is made first",
			Method: http.MethodDelete, Path: one, Class: ratelimit.Write, Target: Preview, Work: serve.Accepted(x.remove),
			Refusals: []fault.Code{fault.PreviewConflict},
		},
	}
	for i := range rows {
		rows[i].Key = serve.PreviewKey
	}
	return rows
}

func (x previewRoutes) create() serve.Work {
	return serve.Work{
		Answers: []serve.Documented{
			{Status: http.StatusCreated, Body: wire.CreatedPreview{}, Meaning: "It was made"},
			{Status: http.StatusOK, Body: wire.CreatedPreview{}, Meaning: "The ref had it"},
		},
		Handle: func(r *serve.Request) (serve.Answer, error) {
			b := serve.Decoded[wire.CreatePreview](r)
			o, err := x.use.Open(r.Context(), r.Caller, previews.Request{
				Ref: b.Ref, TTLHours: b.TTLHours, ScheduledBackup: b.ScheduledBackup,
			})
			status := http.StatusOK
			if o.Fresh {
				status = http.StatusCreated
			}
			return serve.Answer{Status: status, Body: viewOpened(o)}, err
		},
	}
}

func viewOpened(o previews.Opened) wire.CreatedPreview {
	made := viewMade(o.Made)
	return wire.CreatedPreview{Data: viewPreview(o.Preview), Connection: wire.PreviewConnection{
		Host: made.Host, Port: made.Port, Database: made.Database.Database, Username: made.Username,
		Password: made.Password, ConnectionString: made.ConnectionString,
	}}
}

// find has a missing ref refused as an empty one is.
func (x previewRoutes) find(r *serve.Request) (out wire.Data[wire.Preview], err error) {
	ref, _, err := r.Query(refParameter)
	if err != nil {
		return out, err
	}
	found, err := x.use.ReachRef(r.Context(), r.Caller, ref)
	if err != nil {
		return out, err
	}
	return shown(x.use.Get(r.Context(), found))
}

func (x previewRoutes) get(r *serve.Request) (wire.Data[wire.Preview], error) {
	return shown(x.use.Get(r.Context(), previewOf(r)))
}

func (x previewRoutes) extend(r *serve.Request) (wire.Data[wire.Preview], error) {
	return shown(x.use.Extend(r.Context(), previewOf(r), serve.Decoded[wire.ExtendPreview](r).TTLHours))
}

func (x previewRoutes) setBackup(r *serve.Request) (wire.Data[wire.Preview], error) {
	return shown(x.use.SetSchedule(r.Context(), previewOf(r), serve.Decoded[wire.SetBackupPolicy](r).ScheduledBackup))
}

func (x previewRoutes) remove(r *serve.Request) (wire.DataWithMessage[wire.Preview], error) {
	p, err := x.use.Delete(r.Context(), previewOf(r))
	message := "The preview is being deleted."
	switch p.Lease { //nolint:exhaustive // a deletion leads to no other
	case preview.Deleted:
		message = "The preview is deleted."
	case preview.Expired:
		message = "The preview is deleted as soon as what is done to it has ended."
	}
	return wire.DataWithMessage[wire.Preview]{Message: message, Data: viewPreview(p)}, err
}

func shown(p preview.Preview, err error) (wire.Data[wire.Preview], error) {
	return wire.Data[wire.Preview]{Data: viewPreview(p)}, err
}
