package databases

import (
	"context"

	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/retire"
)

// DropLogins ends the roles of a database that are still those we made, and removes the database from the ledger, with what
// was told of it: all or nothing.
func (x *Databases) DropLogins(ctx context.Context, d ledger.Database) error {
	const query = `SELECT r.rolname FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.database_id = $1 ORDER BY 1`
	roles, err := pg.Column(ctx, x.db, query, d.ID)
	if err != nil {
		return err
	}
	ending := retire.Ending{Roles: roles, Forget: append(ledger.ForgetTold(d.ID),
		"DELETE FROM pooler.gate WHERE database = "+pg.Quote(d.Name), "DELETE FROM pooler.shut WHERE database = "+pg.Quote(d.Name),
		"DELETE FROM ledger.role WHERE database_id = "+pg.Quote(d.ID),
		"DELETE FROM ledger.database WHERE id = "+pg.Quote(d.ID))}
	retired, err := ending.End(ctx, x.ledger.Soon)
	if retired {
		x.ledger.Retired.Wake()
	}
	return err
}
