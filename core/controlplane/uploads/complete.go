package uploads

import (
	"context"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// Complete queues the restore from an upload of which all has come; its size and SHA-256 are compared with the announcement
// before anything of it is read. The same request again returns the same operation, until that has ended. UPLOAD_NOT_FOUND.
// BACKUP_CONFLICT: a part is missing, or it was completed with other consents. MANAGED_ROLE_CONFLICT, LEGACY_ROLE_CONFLICT,
// DATABASE_STATE_CONFLICT: see restore.Scene.AdmitsUpload. AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE; RATE_LIMITED, SERVER_BUSY: see
// Reached.MayCall.
func (u *Uploads) Complete(
	ctx context.Context, r access.Reached, of id.UploadID, c restore.Consents,
) (o operation.Operation, err error) {
	release, err := r.PermitCall(ctx, u.base, account.Own, rollout.RestoreUpload)
	if err != nil {
		return o, err
	}
	defer release()
	missing := upload.NotFound()
	if found, err := u.taking(ctx, r.Record().ID, of); err == nil {
		received, err := u.received(ctx, r.Record(), found)
		if err != nil {
			return o, err
		}
		missing = found.Complete(received)
	}
	fresh := false
	err = r.Update(ctx, u.base, func(ctx context.Context, tx ports.Tx, locked database.Record) (err error) {
		o, fresh, err = u.queue(ctx, tx, locked, r, of, c, missing)
		return err
	})
	if err == nil && fresh {
		u.base.Work.Reserved(o.Kind)
	}
	return o, err
}

// queue returns the operation that the upload is for already, or a fresh one where it is whole.
func (u *Uploads) queue(
	ctx context.Context, tx ports.Tx, locked database.Record, r access.Reached, of id.UploadID, c restore.Consents,
	missing error,
) (o operation.Operation, fresh bool, err error) {
	found, err := tx.Uploads().Get(ctx, locked.ID, of)
	switch {
	case err != nil:
		return o, false, base.NotFound(err, upload.NotFound())
	case found.OperationID != "":
		o, err = again(ctx, tx, found.OperationID, c)
		return o, false, err
	case !found.Takes(u.base.Clock.Now()):
		return o, false, upload.NotFound()
	case missing != nil:
		return o, false, missing
	}
	whole := restore.Upload{ID: found.ID, SizeBytes: found.SizeBytes, SHA256: found.SHA256, MaxBytes: locked.StorageQuota()}
	o, err = u.restore(ctx, tx, locked, r, whole, c)
	if err != nil {
		return o, false, err
	}
	found.OperationID = o.ID
	return o, true, tx.Uploads().Save(ctx, found)
}

// again returns the operation of an upload that was completed before, with the same consents.
func again(ctx context.Context, tx ports.Tx, of id.OperationID, c restore.Consents) (operation.Operation, error) {
	o, err := tx.Operations().Get(ctx, of)
	if err != nil {
		return o, err
	}
	input, err := operation.Decode[restore.Input](o.Input)
	if err == nil && input.Consents != c {
		err = fault.New(fault.BackupConflict, "the upload was completed with other consents, by operation %s", of)
	}
	return o, err
}
