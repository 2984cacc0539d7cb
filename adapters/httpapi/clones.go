package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/clone"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/rollout"
)

type cloneRoutes struct{ use *clones.Clones }

func (x cloneRoutes) routes() []serve.Route {
	return []serve.Route{{
		Name: "cloneDatabase", Summary: "Make a new database that begins with what this one holds, or held at a moment or in a backup",
		Method: http.MethodPost, Path: databasesPath + "/{id}/clone", Class: ratelimit.Create, Key: serve.FullAccount,
		PlanRefusal: fault.PlanLimit, Target: Archived, Action: account.Own, Gate: rollout.Clone,
		Body: serve.JSON[wire.CloneDatabase](), Idempotency: serve.Optional, NoStore: true, Work: serve.Accepted(x.start),
		Refusals: []fault.Code{
			fault.InvalidBackupFilename, fault.BackupNotFound, fault.BackupNotVerified, fault.DatabaseStateConflict,
			fault.QueryTimeoutCloneRequiresReconfigure, fault.AgentError, fault.PointNotRecoverable, fault.AgentRouteUnavailable,
		},
	}}
}

func (x cloneRoutes) start(r *serve.Request) (wire.ClonedDatabase, error) {
	b := serve.Decoded[wire.CloneDatabase](r)
	at, err := momentOf(b.PointInTime)
	if err != nil {
		return wire.ClonedDatabase{}, err
	}
	s, err := x.use.Start(r.Context(), databaseOf(r), clone.Request{
		Name: b.Name, DisplayName: b.DisplayName, Filename: b.Filename, At: at, Key: r.Key,
	})
	return wire.ClonedDatabase{
		Message: "The clone is being made.", Operation: viewOperation(s.Operation), Database: viewMade(s.Clone),
	}, err
}
