package httpapi

import (
	"context"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
)

// Target is a kind of thing that the first parameter of a path names.
type Target struct {
	Name    string // in one word, for people
	missing fault.Code
	// find reaches such a thing for the caller; what it returns is the handler's Request.Target.
	find func(ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need) (any, error)
}

// The kinds of targets.
var (
	Database = &Target{"database", fault.DatabaseNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Access.Reach(ctx, c, id.DatabaseID(n.ID), n.Action, n.gates()...)
	}}
	// DatabaseSummary is what is shown of a database, and no more: its admission reads it.
	DatabaseSummary = &Target{"database", fault.DatabaseNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Databases.Show(ctx, c, n.Summary, id.DatabaseID(n.ID))
	}}
	// Recoverable is a database that may be a deleted one; what was found chooses the gate.
	Recoverable = &Target{"database", fault.DatabaseNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Deletion.Reach(ctx, c, id.DatabaseID(n.ID), n.Action)
	}}
	// BuriedBackup is the deletion backup of a database.
	BuriedBackup = &Target{"database", fault.DeletionBackupNotAvailable, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Deletion.ReachBackup(ctx, c, id.DatabaseID(n.ID), n.Action, n.gates()...)
	}}
	Operation = &Target{"operation", fault.OperationNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Operations.Reach(ctx, c, id.OperationID(n.ID), n.Action, n.gates()...)
	}}
	Webhook = &Target{"webhook", fault.WebhookNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Webhooks.Reach(ctx, c, id.WebhookID(n.ID), n.gates()...)
	}}
	Preview = &Target{"preview", fault.PreviewNotFound, func(
		ctx context.Context, cp *controlplane.ControlPlane, c access.Caller, n Need,
	) (any, error) {
		return cp.Previews.Reach(ctx, c, id.DatabaseID(n.ID))
	}}
)

func (n Need) gates() []rollout.Gate {
	if n.Gate == "" {
		return nil
	}
	return []rollout.Gate{n.Gate}
}
