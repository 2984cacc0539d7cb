package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/fault"
)

// CutShortError says that PostgreSQL or the agent went down during every attempt at a backup. Its text may be shown to the
// customer.
type CutShortError struct {
	What     string // "backup"
	Attempts int
	At       *load.StatementError // where the last attempt's restore was; nil where that is not known
}

// cutShort is the error of so many attempts, the last of which has ended with an error; nil where that is not known.
func cutShort(what string, attempts int, last error) *CutShortError {
	e := &CutShortError{What: what, Attempts: attempts}
	var in *load.InterruptedError
	if errors.As(last, &in) {
		e.At = in.At
	}
	return e
}

func (e *CutShortError) Error() string {
	text := fmt.Sprintf("PostgreSQL or its agent went down during %d attempts at this %s", e.Attempts, e.What)
	if e.At != nil {
		text += "; the last one's restore was in " + e.At.Where()
	}
	return text
}

// Abandon ends a backup of which so many attempts were cut short, the last with an error or, if that is nil, with the agent
// itself. It removes what they left in PostgreSQL, and runs nothing of the customer's. A backup that is complete is returned. A
// file that is not verified stays, as the result says, with BACKUP_NOT_VERIFIED: it may be good. Without a file, the error is a
// *CutShortError. After any other error, call Abandon again. The request must not be running.
func (b *Backuper) Abandon(ctx context.Context, req Request, attempts int, last error) (Result, error) {
	done, err := b.turn(ctx, req.OperationID)
	if err != nil {
		return Result{}, err
	}
	defer done()
	if err := b.removeWork(ctx, req); err != nil {
		return Result{}, err
	}
	why := cutShort("backup", attempts, last)
	found, result, err := b.standing(req)
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
