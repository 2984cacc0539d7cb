// Package uploads takes dumps of customers' own, and has databases restored from them.
package uploads

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/slot"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// Uploads are the use cases. A dump is announced, sent in as many pieces as its sender likes, and completed, which restores the
// database from it. Its bytes are only on the database server.
type Uploads struct {
	base    *base.Base
	restore Restoring
	sending *base.Limiter
}

// Restoring queues the restore from an upload, in a transaction that has locked its database.
type Restoring func(
	ctx context.Context, tx ports.Tx, locked database.Record, r access.Reached, u restore.Upload, c restore.Consents,
) (operation.Operation, error)

// New makes the use cases, and registers their periodic task.
func New(p *base.Base, r Restoring) *Uploads {
	c := p.Config
	u := &Uploads{base: p, restore: r, sending: base.NewLimiter(
		slot.Limits{PerAccount: c.DownloadsPerAccount, Share: c.DownloadsPerAccount, PerServer: c.DownloadsPerServer}, c.DownloadWait,
		"the account sends too many uploads at a time", "too many uploads to this database server at the moment",
	)}
	u.registerRounds()
	return u
}

// Announce makes an upload, and has the server keep the room for it. One of the same database that is not complete ends: its
// sender may not have heard of it. FORBIDDEN: anyone but the owner. VALIDATION_ERROR. MANAGED_ROLE_CONFLICT,
// DATABASE_STATE_CONFLICT: see restore.Scene.AdmitsUpload. BACKUP_STORAGE_FULL: the account has too many, or the server has no
// room. AGENT_ERROR, AGENT_ROUTE_UNAVAILABLE; RATE_LIMITED, SERVER_BUSY: see Reached.MayCall.
func (u *Uploads) Announce(ctx context.Context, r access.Reached, size int64, sha256 string) (made upload.Upload, err error) {
	if err := r.Permit(account.Own, rollout.RestoreUpload); err != nil {
		return made, err
	}
	made, err = upload.New(base.NewID[id.UploadID](u.base.Entropy), r.Record().ID, size, sha256, u.base.Clock.Now())
	if err != nil {
		return made, err
	}
	release, err := r.MayCall(ctx, u.base)
	if err != nil {
		return made, err
	}
	defer release()
	if err := u.replace(ctx, r); err != nil {
		return made, err
	}
	if err := u.add(ctx, r, made); err != nil {
		return made, err
	}
	return made, u.open(ctx, r.Record(), made)
}

// replace ends the uploads of a database that are not complete.
func (u *Uploads) replace(ctx context.Context, r access.Reached) error {
	var former []upload.Upload
	err := r.Update(ctx, u.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := (restore.Scene{Database: locked}).AdmitsUpload(); err != nil {
			return err
		}
		all, err := tx.Uploads().OfAccount(ctx, locked.AccountID)
		former = nil
		for _, one := range all {
			if one.DatabaseID == locked.ID && one.OperationID == "" {
				former = append(former, one)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range former {
		if err := u.end(ctx, one, r.Record().ServerID); err != nil && !errors.Is(err, base.ErrSettled) {
			return failed(err)
		}
	}
	return nil
}

// add stores the record. What the account has already includes what has ended, until the server has removed it.
func (u *Uploads) add(ctx context.Context, r access.Reached, made upload.Upload) error {
	return r.Update(ctx, u.base, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		if err := (restore.Scene{Database: locked}).AdmitsUpload(); err != nil {
			return err
		}
		if _, err := tx.Accounts().LockForQuota(ctx, locked.AccountID); err != nil {
			return err
		}
		beside, err := tx.Uploads().OfAccount(ctx, locked.AccountID)
		if err != nil {
			return err
		}
		if err := upload.Admits(beside, made); err != nil {
			return err
		}
		return tx.Uploads().Add(ctx, made)
	})
}

// open has the server keep the room. If it does not, or the upload has ended meanwhile, whatever there is of it is removed, now
// or by the periodic task.
func (u *Uploads) open(ctx context.Context, r database.Record, made upload.Upload) error {
	agent, err := u.base.AgentOf(ctx, r.ServerID)
	if err == nil {
		_, err = ports.Ask(ctx, agent, command.OpenUpload{
			DatabaseID: r.ID, UploadID: made.ID, SizeBytes: made.SizeBytes, ExpiresAt: made.KeptUntil(),
		})
	}
	if err == nil {
		if _, err = u.taking(ctx, r.ID, made.ID); err == nil {
			return nil
		}
	}
	ctx, cancel := u.base.Settling(ctx)
	defer cancel()
	if left := u.end(ctx, made, r.ServerID); left != nil {
		u.base.Log(ctx, "upload.not_ended", r.ID, left)
	}
	return failed(err)
}

// taking reads an upload that takes bytes, and may be completed. UPLOAD_NOT_FOUND.
func (u *Uploads) taking(ctx context.Context, db id.DatabaseID, of id.UploadID) (upload.Upload, error) {
	found, err := ports.Read(ctx, u.base.Store, func(ctx context.Context, tx ports.Tx) (upload.Upload, error) {
		return tx.Uploads().Get(ctx, db, of)
	})
	if err == nil && !found.Takes(u.base.Clock.Now()) {
		err = ports.ErrNoRow
	}
	return found, base.NotFound(err, upload.NotFound())
}
