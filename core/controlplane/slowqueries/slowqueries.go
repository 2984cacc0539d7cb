// Package slowqueries shows what takes a database's time.
package slowqueries

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/ports"
)

// SlowQueries shows the statements of databases to those who may configure them: the texts say what the owner's programs do.
type SlowQueries struct{ base *base.Base }

// New makes the use case.
func New(p *base.Base) *SlowQueries { return &SlowQueries{base: p} }

// List returns what the logins of a database have run there, the first in an order, and since when the server has counted that.
// FORBIDDEN: a developer or viewer. FEATURE_NOT_AVAILABLE: the server counts nothing. DATABASE_STATE_CONFLICT: it does not have
// the database, or no longer. AGENT_ERROR: it cannot say now. AGENT_ROUTE_UNAVAILABLE: its agent is to be updated.
func (x *SlowQueries) List(ctx context.Context, r access.Reached, o slowquery.Order) (list command.SlowQueryList, err error) {
	release, err := r.PermitCall(ctx, x.base, account.Configure)
	if err != nil {
		return list, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, x.base.RoleWait)
	defer cancel()
	agent, err := x.base.AgentOf(ctx, r.Record().ServerID)
	if err != nil {
		return list, err
	}
	list, err = ports.Ask(ctx, agent, command.SlowQueries{DatabaseID: r.Record().ID, Order: o})
	switch {
	case base.Unserved(err):
		return list, fault.Wrap(err, fault.AgentRouteUnavailable,
			"slow queries are unavailable until the agent of the database server is updated")
	case command.RefusedFor(err, command.ReasonNotFound), command.RefusedFor(err, command.ReasonIsolated):
		return list, fault.Wrap(err, fault.DatabaseStateConflict,
			"slow queries are those of a database that stands, and the status is %s", r.Record().Status)
	case err != nil:
		return list, fault.Wrap(err, fault.AgentError, "the database server cannot say now which queries are slow; try again")
	case !list.Collected:
		return list, fault.New(fault.FeatureNotAvailable, "the database server does not count statements")
	}
	return list, nil
}
