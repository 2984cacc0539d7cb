package artifact

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/id"
)

// Sweep drops the isolated copies, their logins and the logins of dumps that bear our mark and that nobody works on. It goes on
// beside backups: one that is resumed has the same names, and a sweep leaves them to it.
//
// Whatever keeps one of them keeps only that: no statement about a login waits longer than 100 ms, and what could not be done a
// later sweep tries again.
func (b *Backuper) Sweep(ctx context.Context) error {
	return b.cfg.with(b.cfg.Maintenance, "", func(admin *sql.DB) error {
		return errors.Join(
			b.sweep(ctx, admin, dumpLogins, func(ctx context.Context, name string) error {
				return dropDumpLogin(ctx, admin, name, sweepPatience)
			}),
			b.sweep(ctx, admin, copyLogins, func(ctx context.Context, name string) error {
				return dropMarked(ctx, admin, name, sweepPatience, func(string) {})
			}))
	})
}

// sweep calls drop for each login of a kind that is ours and that nobody works on.
func (b *Backuper) sweep(
	ctx context.Context, admin *sql.DB, k loginKind, drop func(ctx context.Context, name string) error,
) error {
	names, err := column(ctx, admin, "logins to sweep", `SELECT rolname FROM pg_roles
		WHERE rolname ~ '^`+k.prefix+`[0-9a-f]{32}$' AND shobj_description(oid, 'pg_authid') = '`+k.mark+`' || rolname`)
	left := 0
	for _, name := range names {
		done := b.turns.Try(name[len(k.prefix):])
		if done == nil {
			continue
		}
		if failed := b.one(ctx, name, drop); failed != nil {
			left, err = left+1, cmp.Or(err, failed)
		}
		done()
	}
	if left > 1 {
		err = fmt.Errorf("%d %s logins are left: %w", left, k.prefix, err)
	}
	return err
}

// one bounds the drop of one login. That of a copy waits for a checkpoint.
func (b *Backuper) one(ctx context.Context, name string, drop func(ctx context.Context, name string) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.CleanupTime)
	defer cancel()
	return drop(ctx, name)
}

// turn waits for the turn of an operation; the returned function gives it back. It keeps a sweep and the work on an operation
// apart: both would drop the same logins, and only one makes them again.
func (b *Backuper) turn(ctx context.Context, op id.OperationID) (done func(), err error) {
	return b.turns.Take(ctx, id.Compact(op))
}
