package moves

import (
	"context"
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// ConfirmUpgrade ends the way back of a database to the version of PostgreSQL that it came from; where there is none, nothing
// changes. It returns the record. FORBIDDEN. DATABASE_STATE_CONFLICT while the database moves.
func (m *Moves) ConfirmUpgrade(ctx context.Context, r access.Reached) (confirmed database.Record, err error) {
	if err := r.Permit(account.Own); err != nil {
		return confirmed, err
	}
	err = r.Update(ctx, m.base, func(ctx context.Context, tx ports.Tx, record database.Record) (err error) {
		confirmed, err = m.confirm(ctx, tx, record, r.Caller().Actor(), audit.Details{})
		return err
	})
	return confirmed, err
}

// ConfirmUpgradeOf is ConfirmUpgrade by an operator, who says why. DATABASE_NOT_FOUND. VALIDATION_ERROR on "reason".
func (m *Moves) ConfirmUpgradeOf(
	ctx context.Context, db id.DatabaseID, by operation.Order,
) (confirmed database.Record, err error) {
	if err := by.Check(); err != nil {
		return confirmed, err
	}
	err = m.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, record database.Record) (err error) {
		confirmed, err = m.confirm(ctx, tx, record, audit.Operator, audit.Details{
			audit.OperatorDetail: by.By, audit.ReasonDetail: by.Reason,
		})
		return err
	})
	return confirmed, err
}

func (m *Moves) confirm(
	ctx context.Context, tx ports.Tx, r database.Record, by audit.Actor, details audit.Details,
) (database.Record, error) {
	if r.WayBack == 0 {
		return r, nil
	}
	switch open, err := tx.Operations().Open(ctx, r.ID); {
	case err == nil && open.Kind == Kind:
		return r, fault.New(fault.DatabaseStateConflict, "the database moves to another server: operation %s", open.ID)
	case err != nil && !errors.Is(err, ports.ErrNoRow):
		return r, err
	}
	details["postgresVersion"], details["wayBack"] = strconv.Itoa(r.PostgresVersion), strconv.Itoa(r.WayBack)
	r.WayBack = 0
	if err := tx.Databases().Save(ctx, r); err != nil {
		return r, err
	}
	return r, m.base.Audit(ctx, tx, r, by, audit.UpgradeConfirmed, details)
}

// KeepsWaysBack refuses to take a server out of service that is the last one to whose version ways back lead: VALIDATION_ERROR on
// "server". It locks the servers that take databases, so that of two that go at the same time one sees that it is the last.
func KeepsWaysBack(ctx context.Context, tx ports.Tx, leaving id.ServerID) error {
	if _, err := tx.Servers().Rooms(ctx, ""); err != nil {
		return err
	}
	s, err := tx.Servers().Get(ctx, leaving)
	if err != nil {
		return base.NotFound(err, fault.Invalid("server", "does not exist"))
	}
	waiting, err := tx.Databases().WaysBack(ctx, s.PostgresVersion, move.MostWaiting)
	if err != nil || len(waiting) == 0 {
		return err
	}
	var all []server.Server
	if all, err = tx.Servers().List(ctx); err != nil {
		return err
	}
	return move.KeepsWaysBack(s, all, waiting)
}
