package artifact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/core/fault"
)

// A dump and the restore that verifies it run what a customer has written, which may never end, and may ignore everything that is
// said to it within its session. So both have a limit, and what passes it is ended from outside, by pg_terminate_backend.

// TooLongError says that a dump or a verification was ended because it passed its limit. Its text may be shown to the customer.
type TooLongError struct {
	What  string
	Limit time.Duration
}

func (e *TooLongError) Error() string { return fmt.Sprintf("%s took longer than %s", e.What, e.Limit) }

// limitDump is the context of a dump.
func (b *Backuper) limitDump(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := b.cfg.Limits.Dump
	return context.WithTimeoutCause(ctx, limit, &TooLongError{"the dump", limit})
}

// overlong returns the limit that has ended ctx; nil where it has not ended, or for anything else.
func overlong(ctx context.Context) *TooLongError {
	var e *TooLongError
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}

// explainedDump is explained for a dump that the limit may have ended.
func (c *Config) explainedDump(ctx context.Context, err error) error {
	if late := overlong(ctx); late != nil {
		return errors.Join(late, err)
	}
	return c.explained(noDatabase(err))
}

// limitLoad is the context of a load, which may take as long as a verification. How long an upload took to make, nobody knows.
func (b *Backuper) limitLoad(ctx context.Context, set *fileSet) (context.Context, context.CancelFunc) {
	if limit := b.cfg.UploadTime; set.uploaded {
		return context.WithTimeoutCause(ctx, limit, &TooLongError{"the restore", limit})
	}
	return b.limitCopy(ctx, "the restore", set.took)
}

// limitCopy is the context of work on a copy, by how long the dump took. That is read from what is stored, so that a later
// process knows it.
func (b *Backuper) limitCopy(ctx context.Context, what string, dump time.Duration) (context.Context, context.CancelFunc) {
	limit := b.cfg.Limits.Verify(dump)
	return context.WithTimeoutCause(ctx, limit, &TooLongError{what, limit})
}

// unverifiedInTime returns BACKUP_NOT_VERIFIED, with the statement that was running, and the *TooLongError, for work on a copy
// that the limit has ended.
func unverifiedInTime(ctx context.Context, err error) error {
	late := overlong(ctx)
	if err == nil || late == nil || fault.Has(err, fault.BackupNotVerified) {
		return err
	}
	var in *load.InterruptedError
	if errors.As(err, &in) {
		return errors.Join(notVerified(fmt.Errorf("%w; it was ended in %s", late, in.At.Where())), late)
	}
	return errors.Join(notVerified(late), late)
}

// within runs work on the copy. Once ctx has ended, for whatever cause, it ends the copy's sessions.
func (i *isolated) within(ctx context.Context, work func(context.Context) error) error {
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
func (i *isolated) endCopy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	left, err := joblogin.EndSessions(ctx, i.admin, copyPatience,
		`backend_type = 'client backend' AND (usename = $1 OR datname = $1 AND usename = current_user)`, i.name())
	if err == nil && left > 0 {
		err = fmt.Errorf("%d do not end", left)
	}
	if err != nil {
		return fmt.Errorf("end the copy's sessions: %w", err)
	}
	return nil
}
