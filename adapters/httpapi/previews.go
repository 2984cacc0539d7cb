package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/recovery"
)

const refParameter = "ref"

type previewRoutes struct{ use *previews.Previews }

func previewOf(r *serve.Request) previews.Reached { return r.Target.(previews.Reached) }

func viewPreview(p preview.Preview) wire.Preview {
	return wire.Preview{
		DatabaseID: p.DatabaseID, NamespaceID: p.NamespaceID, Ref: p.Ref, LeaseStatus: p.Lease.Shown(),
		LeaseGeneration: p.Generation, ExpiresAt: instant(p.ExpiresAt), ScheduledBackup: p.Schedule,
		RecoveryDeadline: instantOrNull(p.RecoveryDeadline), Source: nullIfZero(p.SourceID), PointInTime: instantOrNull(p.SourceAt),
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
			Refusals: []fault.Code{
				fault.PreviewConflict, fault.AgentError, fault.ServerBusy, fault.FeatureNotAvailable, fault.DatabaseNotFound,
				fault.Forbidden, fault.PointNotRecoverable, fault.DatabaseStateConflict, fault.QueryTimeoutCloneRequiresReconfigure,
				fault.AgentRouteUnavailable,
			},
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
	rows[0].Key = serve.PreviewOrFull
	return rows
}

func (x previewRoutes) create() serve.Work {
	return serve.Work{
		Answers: []serve.Documented{
			{Status: http.StatusCreated, Body: wire.CreatedPreview{}, Meaning: "It was made"},
			{Status: http.StatusOK, Body: wire.CreatedPreview{}, Meaning: "The ref had it"},
			{Status: http.StatusAccepted, Body: wire.CreatedPreview{}, Meaning: "It is being made with the data of a database"},
		},
		Handle: func(r *serve.Request) (serve.Answer, error) {
			b := serve.Decoded[wire.CreatePreview](r)
			if b.Source != nil || b.PointInTime != nil || b.NamespaceID != nil {
				return x.makeCopy(r, b)
			}
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

func (x previewRoutes) makeCopy(r *serve.Request, b *wire.CreatePreview) (serve.Answer, error) {
	q, err := copyOf(b)
	if err != nil {
		return serve.Answer{}, err
	}
	made, err := x.use.Copy(r.Context(), r.Caller, q)
	if err != nil {
		return serve.Answer{}, err
	}
	view, status := viewOpened(previews.Opened{Preview: made.Preview, Made: made.Made}), http.StatusOK
	if made.Operation.ID != "" {
		view.Operation, status = new(viewOperation(made.Operation)), http.StatusAccepted
	}
	return serve.Answer{Status: status, Body: view}, nil
}

// copyOf reads a request that names all of what a copy needs.
func copyOf(b *wire.CreatePreview) (q previews.CopyRequest, err error) {
	q.Request = previews.Request{Ref: b.Ref, TTLHours: b.TTLHours, ScheduledBackup: b.ScheduledBackup}
	if b.PointInTime == nil {
		return q, fault.Invalid(recovery.Field, "is required")
	}
	if q.At, err = recovery.Parse(*b.PointInTime); err != nil {
		return q, err
	}
	if q.SourceID, err = named("source", b.Source); err != nil {
		return q, err
	}
	q.NamespaceID, err = named("namespaceId", b.NamespaceID)
	return q, err
}

// named reads an ID that has to be there.
func named[T ~string](field string, text *T) (of T, err error) {
	if text == nil {
		return of, fault.Invalid(field, "is required")
	}
	if of, err = id.Parse[T](string(*text)); err != nil {
		err = fault.Invalid(field, "must be a lowercase UUID")
	}
	return of, err
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
