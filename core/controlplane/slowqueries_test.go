package controlplane_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/fakes/fakeagent"
)

func TestSlowQueriesOfADatabase(t *testing.T) {
	w := newWorld(t)
	w.made("shop")
	shop := w.reached(w.only().ID)
	for range 2 {
		w.server.Load("shop", "SELECT 'a';")
	}
	list := must(w.SlowQueries.List(w.ctx, shop, slowquery.ByTotal))(t)
	if len(list.Statements) != 1 || list.Statements[0].Calls != 2 || list.Since.IsZero() {
		t.Errorf("%+v", list)
	}
	must(w.Databases.SetLifecycle(w.ctx, shop, database.Stop))(t)
	equal(t, "of a stopped one", len(must(w.SlowQueries.List(w.ctx, shop, slowquery.ByTotal))(t).Statements), 1)

	for name, c := range map[string]struct {
		broken func(on bool)
		want   fault.Code
	}{
		"unreachable": {w.server.SetUnreachable, fault.AgentError},
		"unavailable": {w.server.SetUnavailable, fault.AgentError},
		"too old":     {w.outdated, fault.AgentRouteUnavailable},
		"not there": {func(on bool) {
			w.server.OnCall(func(context.Context, fakeagent.Call) (f fakeagent.Fault) {
				if on {
					f.Before = command.Refuse(command.ReasonNotFound, "the server has no such database")
				}
				return f
			})
		}, fault.DatabaseStateConflict},
		"counts nothing": {func(on bool) { w.server.SetCounting(!on) }, fault.FeatureNotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			c.broken(true)
			refused(t, errOf(w.SlowQueries.List(w.ctx, shop, slowquery.ByTotal)), c.want)
			c.broken(false)
		})
	}
}
