package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/slowqueries"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/slowquery"
)

func viewSlowQuery(s slowquery.Statement) wire.SlowQuery {
	return wire.SlowQuery{
		ID: s.ID, Username: s.Username, Query: s.Text, Calls: s.Calls, Rows: s.Rows, TotalMs: s.TotalMs, MeanMs: s.MeanMs,
		MaxMs: s.MaxMs,
	}
}

const orderParameter = "order"

type slowQueryRoutes struct{ use *slowqueries.SlowQueries }

func (x slowQueryRoutes) routes() []serve.Route {
	var orders []string
	for _, o := range slowquery.Orders {
		orders = append(orders, string(o))
	}
	return []serve.Route{{
		Name: "getSlowQueries", Summary: "Get what takes most time in a database, what takes longest, or what runs most often",
		Method: http.MethodGet, Path: databasesPath + "/{id}/slow-queries", Class: ratelimit.Read, Target: Database,
		Action: account.Configure, NoStore: true, Work: serve.OK(x.get),
		Query: []serve.Parameter{{Name: orderParameter, Meaning: "what comes first; total, where it is left out", Enum: orders}},
		Refusals: []fault.Code{
			fault.FeatureNotAvailable, fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
		},
	}}
}

func (x slowQueryRoutes) get(r *serve.Request) (wire.Data[wire.SlowQueries], error) {
	var view wire.SlowQueries
	text, given, err := r.Query(orderParameter)
	if view.Order = slowquery.ByTotal; err == nil && given {
		view.Order, err = slowquery.ParseOrder(text)
	}
	if err != nil {
		return wire.Data[wire.SlowQueries]{}, err
	}
	list, err := x.use.List(r.Context(), databaseOf(r), view.Order)
	view.Since, view.Evicted, view.Queries = instant(list.Since), list.Evicted, mapped(list.Statements, viewSlowQuery)
	return wire.Data[wire.SlowQueries]{Data: view}, err
}
