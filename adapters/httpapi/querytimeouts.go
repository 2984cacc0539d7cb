package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/querytimeout"
	"github.com/pgherd/pgherd/core/ratelimit"
)

func viewTimeouts(s querytimeouts.State) wire.Data[wire.QueryTimeouts] {
	view := wire.QueryTimeouts{
		DesiredProfile: s.TimeoutProfile, EffectiveProfile: s.TimeoutEffective, Generation: s.SettingsGeneration,
		PolicyVersion: querytimeout.PolicyVersion, Profiles: mapped(querytimeout.Profiles, viewProfile),
	}
	if s.Change != nil {
		view.Operation = &wire.QueryTimeoutChange{ID: s.Change.ID, Status: s.Change.Status}
	}
	if in := s.InForce; in != nil {
		overrides := mapped(in.RoleOverrides, viewOverride)
		view.DatabaseOID, view.RoleOverrides = &in.DatabaseOID, &overrides
		view.Current = &wire.TimeoutValues{
			StatementTimeoutMs: in.StatementMs, LockTimeoutMs: in.LockMs, IdleInTransactionTimeoutMs: in.IdleInTransactionMs,
		}
	}
	return wire.Data[wire.QueryTimeouts]{Data: view}
}

func viewProfile(p querytimeout.Profile) wire.QueryTimeoutProfile {
	limits := querytimeout.Policy[p]
	return wire.QueryTimeoutProfile{Profile: p, TimeoutValues: wire.TimeoutValues{
		StatementTimeoutMs: limits.Statement.Milliseconds(), LockTimeoutMs: limits.Lock.Milliseconds(),
		IdleInTransactionTimeoutMs: limits.IdleInTransaction.Milliseconds(),
	}}
}

func viewOverride(o command.RoleOverride) wire.RoleTimeoutOverride {
	return wire.RoleTimeoutOverride{Role: o.Role, Setting: o.Setting, Value: o.Value}
}

type timeoutRoutes struct{ use *querytimeouts.QueryTimeouts }

func (q timeoutRoutes) routes() []serve.Route {
	const path = databasesPath + "/{id}/query-timeouts"
	return []serve.Route{
		{
			Name: "getQueryTimeouts", Summary: "Get the query timeouts of a database",
			Method: http.MethodGet, Path: path, Class: ratelimit.Read, Target: Database, Action: account.Own, Work: serve.OK(q.get),
		},
		{
			Name: "setQueryTimeouts", Summary: "Choose a profile of query timeouts for a database",
			Method: http.MethodPost, Path: path, Class: ratelimit.Write, Target: Database, Action: account.Own,
			Body: serve.JSON[wire.SetQueryTimeouts](), Idempotency: serve.Required,
			Work: serve.DoneOrPending(
				"The profile is in effect.", "The change is open, and continues in the background.", q.set),
			Refusals: []fault.Code{
				fault.QueryTimeoutConflict, fault.DatabaseStateConflict, fault.AgentError, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
	}
}

func (q timeoutRoutes) get(r *serve.Request) (wire.Data[wire.QueryTimeouts], error) {
	s, err := q.use.Get(r.Context(), databaseOf(r))
	return viewTimeouts(s), err
}

func (q timeoutRoutes) set(r *serve.Request) (_ wire.Data[wire.QueryTimeouts], isDone bool, _ error) {
	s, err := q.use.Set(r.Context(), databaseOf(r), serve.Decoded[wire.SetQueryTimeouts](r).Profile, r.Key)
	return viewTimeouts(s), err == nil && s.Change.Status.Final(), err
}
