package copies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
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

// watched runs work on a copy, and looks meanwhile at the copy's size with that of its sessions' temporary files, whose names
// hold the process: among those of everybody, which can be very many. Files that parallel workers share are in folders, which are
// not listed: for those there is the reserve.
func (i *Isolated) watched(ctx context.Context, c *diskroom.Claim, work func(context.Context) error) error {
	const size = `SELECT pg_database_size(d.oid) + coalesce((SELECT sum(t.size) FROM pg_ls_tmpdir() t
			JOIN pg_stat_activity a ON substring(t.name from '^pgsql_tmp([0-9]+)\.') = a.pid::text WHERE a.datid = d.oid), 0)
		FROM pg_database d WHERE d.datname = $1`
	used := func(ctx context.Context) (int64, error) { return pg.One[int64](ctx, i.admin, size, i.Name()) }
	return c.Watch(ctx, diskroom.Copy, used, func(ctx context.Context) error { return i.within(ctx, work) })
}

// within runs work on the copy. Once ctx has ended, for whatever cause, it ends the copy's sessions.
func (i *Isolated) within(ctx context.Context, work func(context.Context) error) error {
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { ended <- i.endCopy(context.WithoutCancel(ctx)) })
	err := work(ctx)
	if stop() {
		return err
	}
	return errors.Join(err, <-ended)
}

// copyPatience is for the sessions of a copy. PostgreSQL's own DROP DATABASE ... WITH (FORCE) waits as long.
const copyPatience = 5 * time.Second

// endCopy ends every session of the copy. It is an error if one is left.
func (i *Isolated) endCopy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	left, err := joblogin.EndSessions(ctx, i.admin, copyPatience,
		`backend_type = 'client backend' AND (usename = $1 OR datname = $1 AND usename = current_user)`, i.Name())
	if err == nil && left > 0 {
		err = fmt.Errorf("%d do not end", left)
	}
	if err != nil {
		return fmt.Errorf("end the copy's sessions: %w", err)
	}
	return nil
}
