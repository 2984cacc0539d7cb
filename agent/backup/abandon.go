package backup

import (
	"context"

	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/core/fault"
)

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
	found, result, err := x.standing(req)
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
