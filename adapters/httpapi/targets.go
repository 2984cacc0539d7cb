package httpapi

import (
	"context"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

// The kinds of things that a path begins with.
var (
	Database = &serve.Target{Name: "database", Missing: fault.DatabaseNotFound, Previews: true}
	// DatabaseSummary is what is shown of a database, and no more.
	DatabaseSummary = &serve.Target{Name: "database", Missing: fault.DatabaseNotFound, Summary: true}
	// Recoverable is a database that may be a deleted one; what was found chooses the gate.
	Recoverable = &serve.Target{Name: "database", Missing: fault.DatabaseNotFound}
	// Archived is a database that may be a deleted one, of which its server's archive may have something.
	Archived = &serve.Target{Name: "database", Missing: fault.DatabaseNotFound, Previews: true}
	// BuriedBackup is the deletion backup of a database.
	BuriedBackup = &serve.Target{Name: "database", Missing: fault.DeletionBackupNotAvailable}
	Operation    = &serve.Target{Name: "operation", Missing: fault.OperationNotFound}
	Webhook      = &serve.Target{Name: "webhook", Missing: fault.WebhookNotFound}
	Preview      = &serve.Target{Name: "preview", Missing: fault.PreviewNotFound}
	Namespace    = &serve.Target{Name: "namespace", Missing: fault.NamespaceNotFound}
)

// NewGate makes the use cases the gatekeeper.
func NewGate(cp *controlplane.ControlPlane) serve.Gatekeeper { return gate{cp.Access, cp} }

type gate struct {
	*access.Access
	cp *controlplane.ControlPlane
}

// Reach finds a target by the use case that is about its kind.
func (g gate) Reach(ctx context.Context, c access.Caller, n serve.Need) (any, error) {
	var gates []rollout.Gate
	if n.Gate != "" {
		gates = append(gates, n.Gate)
	}
	switch n.Target {
	case DatabaseSummary:
		return g.cp.Databases.Show(ctx, c, n.Summary, id.DatabaseID(n.ID))
	case Recoverable:
		return g.cp.Deletion.Reach(ctx, c, id.DatabaseID(n.ID), n.Action)
	case Archived:
		return g.cp.Moments.Reach(ctx, c, id.DatabaseID(n.ID), n.Action, gates...)
	case BuriedBackup:
		return g.cp.Deletion.ReachBackup(ctx, c, id.DatabaseID(n.ID), n.Action, gates...)
	case Operation:
		return g.cp.Operations.Reach(ctx, c, id.OperationID(n.ID), n.Action, gates...)
	case Webhook:
		return g.cp.Webhooks.Reach(ctx, c, id.WebhookID(n.ID), gates...)
	case Preview:
		return g.cp.Previews.Reach(ctx, c, id.DatabaseID(n.ID))
	case Namespace:
		return g.cp.Pipelines.Reach(ctx, c, id.NamespaceID(n.ID), gates...)
	default:
		return g.cp.Access.Reach(ctx, c, id.DatabaseID(n.ID), n.Action, gates...)
	}
}
