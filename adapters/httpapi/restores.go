package httpapi

import (
	"net/http"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
)

type restoreRoutes struct{ use *restores.Restores }

func (x restoreRoutes) routes() []Route {
	const one = databasesPath + "/{id}"
	return []Route{
		{
			Name: "reserveManagedRestore", Summary: "Reserve a restore of a database with managed logins, which changes nothing yet",
			Method: http.MethodPost, Path: one + "/managed-restores", Class: ratelimit.Reservation, Key: FullAccount,
			Target: Database, Action: account.Own, NoStore: true,
			Body: JSON[wire.ReserveRestore](), Idempotency: Required, Handle: x.reserve,
			Answers: doneOrPending(wire.OperationWithMessage{},
				"The request was made before, and its restore has succeeded.", "The restore is reserved, or goes on."),
			Refusals: []fault.Code{
				fault.InvalidBackupFilename, fault.ManagedRoleConflict, fault.PreviewConflict, fault.RestoreOperationTerminal,
			},
		},
		{
			Name: "advanceManagedRestore", Summary: "Do the next step of a managed restore; repeat the call until it answers 200",
			Method: http.MethodPost, Path: keyed + "/operations/{operationId}/managed-restore/advance", Class: ratelimit.Write,
			Key: FullAccount, Target: Operation, Action: account.Own, NoStore: true,
			Repeatable: true, Handle: x.advance,
			Answers: doneOrPending(wire.Operation{}, "The database is restored.", "The restore is unfinished."),
			Refusals: []fault.Code{
				fault.ManagedRoleConflict, fault.RestoreOperationTerminal, fault.AgentRouteUnavailable, fault.ServerBusy,
			},
		},
		{
			Name: "restoreBackup", Summary: "Restore a database that has a single login from one of its backups",
			Method: http.MethodPost, Path: one + "/backups/{filename}", Class: ratelimit.Create, Target: Database,
			Action: account.Own, Gate: rollout.Restore,
			Body: JSON[wire.Disconnect](), Handle: x.start,
			Answers: documented(http.StatusAccepted, wire.OperationWithMessage{}),
			Refusals: []fault.Code{
				fault.BackupNotFound, fault.BackupNotVerified, fault.DatabaseStateConflict, fault.ManagedRoleConflict,
				fault.LegacyRoleConflict,
			},
		},
	}
}

func (x restoreRoutes) reserve(r *Request) (Answer, error) {
	o, err := x.use.Reserve(r.Context(), r.database(), restore.Request{
		Filename: Decoded[wire.ReserveRestore](r).BackupFilename, Key: r.Key,
	})
	if o.Status == operation.Succeeded {
		return OK(wire.OperationWithMessage{Message: "The database is restored.", Operation: viewOperation(o)}), err
	}
	return Accepted(wire.OperationWithMessage{
		Message: "The restore is reserved: advance it until it has succeeded.", Operation: viewOperation(o),
	}), err
}

func (x restoreRoutes) advance(r *Request) (Answer, error) {
	target := r.Target.(operations.Reached)
	o, err := x.use.Advance(r.Context(), target.Reached, target.Operation())
	if o.Status == operation.Succeeded {
		return OK(viewOperation(o)), err
	}
	return Accepted(viewOperation(o)), err
}

func (x restoreRoutes) start(r *Request) (Answer, error) {
	if err := confirmed("confirmDisconnect", Decoded[wire.Disconnect](r).ConfirmDisconnect); err != nil {
		return Answer{}, err
	}
	o, err := x.use.Start(r.Context(), r.database(), backup.Filename(r.Param(filenameParameter)))
	return Accepted(wire.OperationWithMessage{Message: "The restore is queued.", Operation: viewOperation(o)}), err
}
