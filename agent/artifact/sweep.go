package artifact

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/setup"
	"github.com/pgherd/pgherd/core/id"
)

// Sweep drops the copies that nobody wants any more and the logins of dumps that nobody works on, and ends reservations whose
// time is over. It goes on beside backups: one that is resumed has the same names, and a sweep leaves them to it.
//
// Whatever keeps one of them keeps only that: no statement about a login waits longer than 100 ms, and what could not be done a
// later sweep tries again.
func (b *Backuper) Sweep(ctx context.Context) error {
	return errors.Join(b.reservations.forget(ctx), b.cfg.with(b.cfg.Maintenance, "", func(admin *sql.DB) error {
		return errors.Join(
			b.sweep(ctx, admin, ownerlessDumps, func(ctx context.Context, name string) error {
				return dropDumpLogin(ctx, admin, name, joblogin.SweepPatience)
			}),
			b.sweep(ctx, admin, unwantedCopies, func(ctx context.Context, name string) error {
				return dropMarked(ctx, admin, name, joblogin.SweepPatience, func(string) {})
			}))
	}))
}

// What there is to sweep where nobody works on the operation: each query has the name of the login and the operation. The copy
// that verifies the backup of a proof, verify_..., goes before qualify_..., whose login owns what is in it.
const (
	ownerlessDumps = `SELECT rolname, substr(rolname, length('` + setup.DumpPrefix + `') + 1)::uuid::text FROM pg_roles
		WHERE rolname ~ '^` + setup.DumpPrefix + `[0-9a-f]{32}$'
			AND shobj_description(oid, 'pg_authid') = '` + string(dumpMark) + `' || rolname ORDER BY 1`
	unwantedCopies = `SELECT c.name, c.operation_id FROM ledger.copy c LEFT JOIN pg_roles r ON r.rolname = c.name
		WHERE (NOT c.until_closed OR NOT EXISTS (
			SELECT FROM ledger.operation o WHERE o.id = c.operation_id AND NOT o.closed))
		AND (r.oid IS NULL OR shobj_description(r.oid, 'pg_authid') = '` + string(copyMark) + `' || r.rolname) ORDER BY 1 DESC`
)

// sweep calls drop for each login of a query whose operation nobody works on.
func (b *Backuper) sweep(
	ctx context.Context, admin *sql.DB, query string, drop func(ctx context.Context, name string) error,
) error {
	type login struct{ name, operation string }
	var logins []login
	err := each(ctx, admin, "logins to sweep", query, func(rows *sql.Rows) error {
		var l login
		err := rows.Scan(&l.name, &l.operation)
		logins = append(logins, l)
		return err
	})
	left := 0
	for _, l := range logins {
		done := b.turns.Try(id.Compact(id.OperationID(l.operation)))
		if done == nil {
			continue
		}
		if failed := b.one(ctx, l.name, drop); failed != nil {
			left, err = left+1, cmp.Or(err, failed)
		} else {
			b.cfg.Log.Info("what an operation left was removed", zap.String("login", l.name), zap.String("operationId", l.operation))
		}
		done()
	}
	if left > 1 {
		err = fmt.Errorf("%d logins are left: %w", left, err)
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
