package copies

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/joblogin"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/pgdump"
	"github.com/pgherd/pgherd/core/id"
)

// Sweep drops the copies that nobody wants any more and the logins of dumps that nobody works on, and ends reservations whose
// time is over. It goes on beside backups: one that is resumed has the same names, and a sweep leaves them to it.
//
// Whatever keeps one of them keeps only that: no statement about a login waits longer than 100 ms, and what could not be done a
// later sweep tries again.
func (x *Copies) Sweep(ctx context.Context) error {
	return errors.Join(x.Room.Forget(ctx), x.Server.Admin("", func(admin *sql.DB) error {
		return errors.Join(
			x.sweep(ctx, admin, pgdump.Logins, func(ctx context.Context, _ string, op id.OperationID) error {
				return pgdump.DropLogin(ctx, admin, op, joblogin.SweepPatience)
			}),
			x.sweep(ctx, admin, unwantedCopies, func(ctx context.Context, name string, _ id.OperationID) error {
				return dropMarked(ctx, admin, name, joblogin.SweepPatience, func(string) {})
			}))
	}))
}

// unwantedCopies has the name of the login and the operation, where nobody works on that. The copy that verifies the backup of a
// proof, verify_..., goes before qualify_..., whose login owns what is in it.
const unwantedCopies = `SELECT c.name, c.operation_id FROM ledger.copy c LEFT JOIN pg_roles r ON r.rolname = c.name
	WHERE (NOT c.until_closed OR NOT EXISTS (
		SELECT FROM ledger.operation o WHERE o.id = c.operation_id AND NOT o.closed))
	AND (r.oid IS NULL OR shobj_description(r.oid, 'pg_authid') = '` + string(copyMark) + `' || r.rolname) ORDER BY 1 DESC`

// sweep calls drop for each login of a query whose operation nobody works on.
func (x *Copies) sweep(
	ctx context.Context, admin *sql.DB, query string,
	drop func(ctx context.Context, name string, op id.OperationID) error,
) error {
	type login struct {
		name string
		op   id.OperationID
	}
	var logins []login
	err := pg.Read(ctx, admin, "logins to sweep", query, func(rows *sql.Rows) error {
		var l login
		err := rows.Scan(&l.name, &l.op)
		logins = append(logins, l)
		return err
	})
	left := 0
	for _, l := range logins {
		done := x.turns.Try(id.Compact(l.op))
		if done == nil {
			continue
		}
		limited, cancel := x.Server.Bounded(ctx) // the drop of a copy waits for a checkpoint
		failed := drop(limited, l.name, l.op)
		cancel()
		if failed != nil {
			left, err = left+1, cmp.Or(err, failed)
		} else {
			x.Log.Info("what an operation left was removed", zap.String("login", l.name), zap.String("operationId", string(l.op)))
		}
		done()
	}
	if left > 1 {
		err = fmt.Errorf("%d logins are left: %w", left, err)
	}
	return err
}

// Turn waits for the turn of an operation; the returned function gives it back. It keeps a sweep and the work on an operation
// apart: both would drop the same logins, and only one makes them again.
func (x *Copies) Turn(ctx context.Context, op id.OperationID) (done func(), err error) {
	return x.turns.Take(ctx, id.Compact(op))
}
