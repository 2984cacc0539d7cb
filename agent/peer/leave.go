package peer

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

// leave implements command.Leave. What was kept for a later operation stays: the database has been here again since. Interrupted
// after any step, it goes on.
func (a *Admissions) leave(ctx context.Context, e protocol.Command, c command.Leave) (none command.None, err error) {
	switch _, found, err := a.ledger.Database(ctx, string(c.DatabaseID)); {
	case err != nil:
		return none, err
	case found:
		return none, command.Refuse(command.ReasonInService, "the server has the database")
	}
	const query = "SELECT operation_id FROM ledger.departed WHERE database_id = $1"
	kept, err := pg.One[string](ctx, a.ledger.DB(), query, string(c.DatabaseID))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return none, err
	}
	outcome := []string{"DELETE FROM ledger.peer WHERE operation_id = " + pg.Quote(e.OperationID)}
	if kept == "" || kept == e.OperationID {
		if err := a.remove(ctx, c); err != nil {
			return none, err
		}
		if len(c.Kept) == 0 {
			outcome = append(outcome, "DELETE FROM ledger.departed WHERE database_id = "+pg.Quote(string(c.DatabaseID)))
		}
	}
	if err := pg.Atomically(ctx, a.ledger.DB(), append(outcome, ledger.Outcome(e, none))...); err != nil {
		return none, err
	}
	a.drop(id.OperationID(e.OperationID))
	return none, nil
}

// remove removes the database's backups but those that are kept.
func (a *Admissions) remove(ctx context.Context, c command.Leave) error {
	if len(c.Kept) == 0 {
		return a.files.DeleteAll(ctx, c.DatabaseID)
	}
	names, err := a.files.List(ctx, c.DatabaseID)
	for _, name := range names {
		if err == nil && !slices.Contains(c.Kept, name) {
			err = a.files.Delete(ctx, c.DatabaseID, name)
		}
	}
	return err
}
