package base

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Idle returns DATABASE_STATE_CONFLICT, with what is in the way, while an operation of a database is open, a change of one of its
// logins is unfinished, or an operation of another database uses it or one of its backups.
func Idle(ctx context.Context, tx ports.Tx, db id.DatabaseID) error {
	switch open, err := tx.Operations().Open(ctx, db); {
	case err == nil:
		return fault.New(fault.DatabaseStateConflict, "another operation of the database is open: %s", open.ID)
	case !errors.Is(err, ports.ErrNoRow):
		return err
	}
	if err := NoLoginChange(ctx, tx, db); err != nil {
		return err
	}
	uses, err := tx.Uses().Of(ctx, db)
	if err == nil && len(uses) > 0 {
		err = fault.New(fault.DatabaseStateConflict, "operation %s uses the database or one of its backups", uses[0].OperationID)
	}
	return err
}

// NoLoginChange returns DATABASE_STATE_CONFLICT while a change of a login is unfinished: it needs the database as it is.
func NoLoginChange(ctx context.Context, tx ports.Tx, db id.DatabaseID) error {
	c, err := tx.RoleChanges().Pending(ctx, db)
	switch {
	case errors.Is(err, ports.ErrNoRow):
		return nil
	case err == nil:
		err = fault.New(fault.DatabaseStateConflict, "a change of a login of the database is unfinished: operation %s", c.ID)
	}
	return err
}
