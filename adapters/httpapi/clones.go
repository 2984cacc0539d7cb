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
		Name: "cloneDatabase", Summary: "Make a new database that begins with what this one holds, or held when a backup was made",
		Method: http.MethodPost, Path: databasesPath + "/{id}/clone", Class: ratelimit.Create, Key: serve.FullAccount,
		PlanRefusal: fault.PlanLimit, Target: Database, Action: account.Own, Gate: rollout.Clone,
		Body: serve.JSON[wire.CloneDatabase](), Idempotency: serve.Optional, NoStore: true, Work: serve.Accepted(x.start),
		Refusals: []fault.Code{
			fault.InvalidBackupFilename, fault.BackupNotFound, fault.BackupNotVerified, fault.DatabaseStateConflict,
			fault.QueryTimeoutCloneRequiresReconfigure, fault.AgentError,
		},
	}}
}

func (x cloneRoutes) start(r *serve.Request) (wire.ClonedDatabase, error) {
	b := serve.Decoded[wire.CloneDatabase](r)
	s, err := x.use.Start(r.Context(), databaseOf(r), clone.Request{
		Name: b.Name, DisplayName: b.DisplayName, Filename: b.Filename, Key: r.Key,
	})
	return wire.ClonedDatabase{
		Message: "The clone is being made.", Operation: viewOperation(s.Operation), Database: viewMade(s.Clone),
	}, err
}
