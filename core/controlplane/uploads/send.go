package uploads

import (
	"context"
	"errors"
	"io"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rollout"
	"github.com/pgherd/pgherd/core/upload"
	"github.com/pgherd/pgherd/ports"
)

// Content is the body of a request to an upload, and what its header says about it.
type Content struct {
	Range  string // Content-Range; empty where the request has none
	Length int64
	Body   io.Reader
}

// Send streams a piece of an upload to its server, or only asks how far it is, and returns how much of it is safe there. Of a
// piece that breaks off, what has come is kept. UPLOAD_NOT_FOUND. VALIDATION_ERROR: see upload.Piece. BACKUP_CONFLICT: the
// piece does not begin where the upload ends, or another one is coming. BACKUP_STORAGE_FULL, AGENT_ERROR,
// AGENT_ROUTE_UNAVAILABLE.
//
// It counts against the caller's account and the server as a download does: RATE_LIMITED, SERVER_BUSY. A server that takes no
// more from all hosts together is SERVER_BUSY too. It ends with
// UPLOAD_NOT_FOUND when the upload expires, and with DATABASE_NOT_FOUND soon after the caller may no longer send it. Errors of
// Content.Body are returned as they are.
func (u *Uploads) Send(ctx context.Context, r access.Reached, of id.UploadID, c Content) (received int64, err error) {
	if err := r.Permit(account.Own, rollout.RestoreUpload); err != nil {
		return 0, err
	}
	found, err := u.taking(ctx, r.Record().ID, of)
	if err != nil {
		return 0, err
	}
	piece, err := found.Piece(c.Range, c.Length)
	if err != nil {
		return 0, err
	}
	if piece.Asks() {
		release, err := r.MayCall(ctx, u.base)
		if err != nil {
			return 0, err
		}
		defer release()
		return u.received(ctx, r.Record(), found)
	}
	release, err := u.sending.Enter(ctx, r.Caller().Account.ID, r.Record().ServerID)
	if err != nil {
		return 0, err
	}
	defer release()
	return u.stream(ctx, r, found, piece, c.Body)
}

// stream has no end of its own beside that of the upload: how slow a sender may be is what body says.
func (u *Uploads) stream(
	ctx context.Context, r access.Reached, found upload.Upload, piece upload.Piece, body io.Reader,
) (received int64, err error) {
	agent, err := u.base.AgentOf(ctx, r.Record().ServerID)
	if err != nil {
		return 0, err
	}
	until, cancel := context.WithTimeout(ctx, found.ExpiresAt.Sub(u.base.Clock.Now()))
	defer cancel()
	chunk := command.Chunk{DatabaseID: found.DatabaseID, UploadID: found.ID, Offset: piece.Offset}
	now, err := ports.Send(until, agent, chunk, piece.Size, r.Keeping(until, u.base, body))
	switch {
	case err == nil:
		return now.ReceivedBytes, nil
	case command.RefusedFor(err, command.ReasonConflict):
		return 0, u.elsewhere(ctx, r.Record(), found)
	case ctx.Err() == nil && until.Err() != nil:
		return 0, upload.NotFound()
	}
	return 0, failed(err)
}

// elsewhere says where an upload goes on.
func (u *Uploads) elsewhere(ctx context.Context, r database.Record, found upload.Upload) error {
	received, err := u.received(ctx, r, found)
	if err != nil {
		return err
	}
	return fault.New(fault.BackupConflict, "the upload has %d bytes: go on with the one at %d", received, received)
}

// received asks how far an upload is.
func (u *Uploads) received(ctx context.Context, r database.Record, found upload.Upload) (int64, error) {
	agent, err := u.base.AgentOf(ctx, r.ServerID)
	if err != nil {
		return 0, err
	}
	now, err := ports.Ask(ctx, agent, command.AskUpload{DatabaseID: found.DatabaseID, UploadID: found.ID})
	return now.ReceivedBytes, failed(err)
}

// failed is the caller's error for one of an agent. One that is a caller's already is returned as it is.
func failed(err error) error {
	var shown *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &shown):
		return shown
	case command.RefusedFor(err, command.ReasonNotFound):
		return upload.NotFound()
	case command.RefusedFor(err, command.ReasonBusy):
		return fault.Wrap(err, fault.BackupConflict,
			"another request sends this upload at the moment: when it has ended, ask how far the upload is")
	case command.RefusedFor(err, command.ReasonCrowded):
		return base.ServerFull(err, "too many uploads to this database server at the moment")
	case command.RefusedFor(err, command.ReasonStorageFull):
		return fault.Wrap(err, fault.BackupStorageFull, "the database server has no room for the upload")
	}
	return base.FileError(err, "the database server does not take the upload now: ask how far it is, and go on")
}
