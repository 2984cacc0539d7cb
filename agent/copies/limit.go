package copies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// A dump and the restore that verifies it run what a customer has written, which may never end, and may ignore everything that is
// said to it within its session. So both have a limit, and what passes it is ended from outside, by pg_terminate_backend.

// limitLoad is the context of a load, which may take as long as a verification. How long an upload took to make, nobody knows.
func (x *Copies) limitLoad(ctx context.Context, set *fileSet) (context.Context, context.CancelFunc) {
	if set.uploaded {
		return jobs.Within(ctx, "the restore", x.UploadTime)
	}
	return x.limitCopy(ctx, "the restore", set.took)
}

// limitCopy is the context of work on a copy, by how long the dump took. That is read from what is stored, so that a later
// process knows it.
func (x *Copies) limitCopy(ctx context.Context, what string, dump time.Duration) (context.Context, context.CancelFunc) {
	return jobs.Within(ctx, what, x.Limits.Verify(dump))
}

// unverifiedInTime returns BACKUP_NOT_VERIFIED, with the statement that was running, and the *jobs.TooLongError, for work on a
// copy that the limit has ended.
func unverifiedInTime(ctx context.Context, err error) error {
	late := jobs.Overlong(ctx)
	if err == nil || late == nil || fault.Has(err, fault.BackupNotVerified) {
		return err
	}
	var in *load.InterruptedError
	if errors.As(err, &in) {
		return errors.Join(backup.NotVerified(fmt.Errorf("%w; it was ended in %s", late, in.At.Where())), late)
	}
	return errors.Join(backup.NotVerified(late), late)
}
