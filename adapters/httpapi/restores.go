package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
)

type restoreRoutes struct{ use *restores.Restores }

func (x restoreRoutes) routes() []serve.Route {
	const one = databasesPath + "/{id}"
	return []serve.Route{
		{
			Name: "reserveManagedRestore", Summary: "Reserve a restore of a database with managed logins, which changes nothing yet",
			Method: http.MethodPost, Path: one + "/managed-restores", Class: ratelimit.Reservation, Key: serve.FullAccount,
			Target: Database, Action: account.Own, NoStore: true,
			Body: serve.JSON[wire.ReserveRestore](), Idempotency: serve.Required,
			Work: serve.DoneOrPending(
				"The request was made before, and its restore has succeeded.", "The restore is reserved, or goes on.", x.reserve),
			Refusals: []fault.Code{
				fault.InvalidBackupFilename, fault.ManagedRoleConflict, fault.PreviewConflict, fault.RestoreOperationTerminal,
				fault.PlanLimit, fault.FeatureNotAvailable, fault.PointNotRecoverable, fault.DatabaseStateConflict, fault.AgentError,
				fault.AgentRouteUnavailable,
			},
		},
		{
			Name: "advanceManagedRestore", Summary: "Do the next step of a managed restore; repeat the call until it answers 200",
			Method: http.MethodPost, Path: keyed + "/operations/{operationId}/managed-restore/advance", Class: ratelimit.Write,
			Key: serve.FullAccount, Target: Operation, Action: account.Own, NoStore: true,
			Repeatable: true, Work: serve.DoneOrPending("The database is restored.", "The restore is unfinished.", x.advance),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.RestoreOperationTerminal, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "restoreBackup", Summary: "Restore a database that has a single login from one of its backups",
			Method: http.MethodPost, Path: one + "/backups/{filename}", Class: ratelimit.Create, Target: Database,
			Action: account.Own, Gate: rollout.Restore,
			Body: serve.JSON[wire.RestoreBackup](), Work: queued("The restore is queued.", x.start),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupNotVerified, fault.DatabaseStateConflict, fault.ManagedRoleConflict,
				fault.LegacyRoleConflict,
			},
		},
	}
}

func (x restoreRoutes) reserve(r *serve.Request) (_ wire.OperationWithMessage, isDone bool, _ error) {
	b := serve.Decoded[wire.ReserveRestore](r)
	at, err := momentOf(b.PointInTime)
	if err != nil {
		return wire.OperationWithMessage{}, false, err
	}
	o, err := x.use.Reserve(r.Context(), databaseOf(r), restore.Request{
		Filename: b.BackupFilename, At: at, Key: r.Key, Consents: restore.Consents{ConfirmShrink: b.ConfirmShrink},
	})
	message := "The restore is reserved: advance it until it has succeeded."
	if o.Status == operation.Succeeded {
		message = "The database is restored."
	}
	return wire.OperationWithMessage{Message: message, Operation: viewOperation(o)}, o.Status == operation.Succeeded, err
}

func (x restoreRoutes) advance(r *serve.Request) (_ wire.Operation, isDone bool, _ error) {
	target := r.Target.(operations.Reached)
	o, err := x.use.Advance(r.Context(), target.Reached, target.Operation())
	return viewOperation(o), o.Status == operation.Succeeded, err
}

func (x restoreRoutes) start(r *serve.Request) (o operation.Operation, err error) {
	b := serve.Decoded[wire.RestoreBackup](r)
	if err := confirmed("confirmDisconnect", b.ConfirmDisconnect); err != nil {
		return o, err
	}
	return x.use.Start(r.Context(), databaseOf(r), filenameOf(r), restore.Consents{ConfirmShrink: b.ConfirmShrink})
}
