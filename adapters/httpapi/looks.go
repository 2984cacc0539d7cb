package httpapi

import (
	"net/http"
	"time"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/looks"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/core/rollout"
)

type lookRoutes struct{ use *looks.Looks }

func (x lookRoutes) routes() []serve.Route {
	rows := []serve.Route{{
		Name: "rescueTables", Summary: "Put tables as they were at a moment into a schema of the database as it is",
		Path: databasesPath + "/{id}/rescue", Body: serve.JSON[wire.RescueTables](),
		Work: queued("The tables are being rescued.", x.rescue),
	}, {
		Name: "compareMoments", Summary: "Compare the tables, columns and numbers of rows of a database at two moments",
		Path: databasesPath + "/{id}/comparisons", Body: serve.JSON[wire.CompareMoments](),
		Work: queued("The moments are being compared.", x.compare),
	}, {
		Name: "findMoment", Summary: "Find the second from which on the answer of a query fulfils a comparison",
		Path: databasesPath + "/{id}/searches", Body: serve.JSON[wire.FindMoment](),
		Work: queued("The moment is being looked for.", x.search),
	}}
	for i := range rows {
		r := &rows[i]
		r.Method, r.Class, r.Key, r.PlanRefusal = http.MethodPost, ratelimit.Create, serve.FullAccount, fault.PlanLimit
		r.Target, r.Action, r.Gate = Database, account.Own, rollout.Clone
		r.Idempotency, r.NoStore = serve.Optional, true
		r.Refusals = []fault.Code{
			fault.DatabaseStateConflict, fault.FeatureNotAvailable, fault.PointNotRecoverable, fault.AgentError,
			fault.AgentRouteUnavailable,
		}
	}
	return rows
}

func (x lookRoutes) rescue(r *serve.Request) (o operation.Operation, err error) {
	b := serve.Decoded[wire.RescueTables](r)
	q := recovery.Rescue{Key: r.Key}
	if q.At, err = recovery.Parse(b.PointInTime); err != nil {
		return o, err
	}
	if q.Tables, err = recovery.Tables(b.Tables); err != nil {
		return o, err
	}
	return x.use.Rescue(r.Context(), databaseOf(r), q)
}

func (x lookRoutes) compare(r *serve.Request) (o operation.Operation, err error) {
	b := serve.Decoded[wire.CompareMoments](r)
	q := recovery.Between{Key: r.Key}
	if q.From, err = recovery.ParseAs("from", b.From); err != nil {
		return o, err
	}
	if q.To, err = recovery.ParseAs("to", b.To); err != nil {
		return o, err
	}
	return x.use.Compare(r.Context(), databaseOf(r), q)
}

func (x lookRoutes) search(r *serve.Request) (o operation.Operation, err error) {
	b := serve.Decoded[wire.FindMoment](r)
	q := recovery.Find{Query: b.Query, Until: b.Until, Key: r.Key}
	for _, one := range []struct {
		field string
		text  *string
		at    **time.Time
	}{{"from", b.From, &q.From}, {"to", b.To, &q.To}} {
		if one.text == nil {
			continue
		}
		at, err := recovery.ParseAs(one.field, *one.text)
		if err != nil {
			return o, err
		}
		*one.at = &at
	}
	return x.use.Search(r.Context(), databaseOf(r), q)
}
