package backup

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
)

// standing is what stands in the store of a request's backup.
type standing int

const (
	// nothing: no file of the name is committed. What is written of one is made again.
	nothing standing = iota
	// foreign: the file of that name is another operation's. The request can make none, and may not touch that one.
	foreign
	// damaged: a file of that name is committed, but its manifest cannot be read, so nobody can tell whose it is. Nothing is ever
	// restored from it.
	damaged
	// unverified: the request's file is there. It asks for a verification, which is not recorded.
	unverified
	// complete: everything is there that the request asks for.
	complete
)

// standing looks up what stands of a request's backup. The result has what is the request's own. Whether a file is verified is
// read only where the request asks for that.
func (x *Backups) standing(ctx context.Context, req Request) (standing, Result, error) {
	m, err := x.files(req).Manifest(ctx, req.DatabaseID, req.Filename)
	switch {
	case fault.Has(err, fault.BackupNotFound), command.RefusedFor(err, command.ReasonNotFound): // the database went with its key
		return nothing, Result{}, nil
	case errors.Is(err, backup.ErrManifest):
		return damaged, Result{}, nil
	case err != nil:
		return nothing, Result{}, err
	case m.OperationID != req.OperationID:
		return foreign, Result{}, nil
	case !req.Verify:
		return complete, Result{Manifest: m}, nil
	}
	at, err := x.files(req).VerifiedAt(ctx, m)
	if err != nil || at == nil {
		return unverified, Result{Manifest: m}, err
	}
	return complete, Result{Manifest: m, VerifiedAt: at}, nil
}

// standsFor is standing for who makes the backup: nothing stands where that cannot be looked up. What is dumped then waits until
// it can be stored, and takes the place of nothing. A file that passes may have been read by another server, which follows what
// has changed since: another one would be of a later moment.
func (x *Backups) standsFor(ctx context.Context, req Request) (standing, Result, error) {
	found, result, err := x.standing(ctx, req)
	if away(ctx, err) && !req.Passing {
		return nothing, Result{}, nil
	}
	return found, result, err
}

// Discard removes everything of a request's backup: its sessions, its login, its isolated copy, partial files, and the file, even
// if that is verified. The file of another operation stays. The request must not be running.
func (x *Backups) Discard(ctx context.Context, req Request) error {
	done, err := x.copies.Turn(ctx, req.OperationID)
	if err != nil {
		return err
	}
	defer done()
	return x.Remove(ctx, req)
}

// Remove is Discard for who has the operation's turn.
func (x *Backups) Remove(ctx context.Context, req Request) error {
	if err := x.copies.RemoveVerification(ctx, req.OperationID); err != nil {
		return err
	}
	req.Verify = false // whether it is verified does not matter, nor whether that can be read
	// A damaged one goes too: the name was given to this request.
	if found, _, err := x.standing(ctx, req); err != nil || found == foreign {
		return err
	}
	return x.files(req).Delete(ctx, req.DatabaseID, req.Filename)
}

// Complete reports whether the backup of this very request is complete: its file exists and, where it is to be verified, is.
func (x *Backups) Complete(ctx context.Context, req Request) (bool, error) {
	found, _, err := x.standing(ctx, req)
	return found == complete, err
}

// Abandon ends a backup of which so many attempts were cut short, the last with an error or, if that is nil, with the agent
// itself. It removes what they left in PostgreSQL, and runs nothing of the customer's. A backup that is complete is returned. A
// file that is not verified stays, as the result says, with BACKUP_NOT_VERIFIED: it may be good. Without a file, the error is a
// *jobs.CutShortError. After any other error, call Abandon again. The request must not be running.
func (x *Backups) Abandon(ctx context.Context, req Request, attempts int, last error) (Result, error) {
	done, err := x.copies.Turn(ctx, req.OperationID)
	if err != nil {
		return Result{}, err
	}
	defer done()
	if err := x.copies.RemoveVerification(ctx, req.OperationID); err != nil {
		return Result{}, err
	}
	why := copies.CutShort("backup", attempts, last)
	found, result, err := x.standing(ctx, req)
	if err != nil {
		return Result{}, err
	}
	switch found {
	case complete:
		return result, nil
	case unverified:
		return result, fault.New(fault.BackupNotVerified, "the backup file could not be verified: %s", why.Error())
	default:
		return Result{}, why
	}
}
