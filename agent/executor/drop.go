package executor

import (
	"context"

	"github.com/pgherd/pgherd/agent/pg"
)

// dependentObjects is PostgreSQL's error for a role that something still refers to.
const dependentObjects = "2BP01"

// isKept reports whether a role was not dropped because something refers to it, or an open transaction is about to: anyone who
// knows a role's name can grant something to it, and what is not committed shows nowhere.
func isKept(err error) bool { return sqlState(err) == dependentObjects || inTheWay(err) }

// dropLogins drops the roles of a database that are still those we made, and removes the database from the ledger: all or
// nothing. If others prevent the drop of one of them, all are buried.
func (x *Executor) dropLogins(ctx context.Context, d databaseRow) error {
	const query = `SELECT r.rolname FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.database_id = $1 ORDER BY 1`
	roles, err := pg.Column(ctx, x.db, query, d.ID)
	if err != nil {
		return err
	}
	drop, bury := []string{soon}, []string{soon}
	for _, r := range roles {
		drop = append(drop, "DROP ROLE "+ident(r))
		bury = append(bury, buryStatements(r)...)
	}
	forget := []string{
		"DELETE FROM pooler.gate WHERE database = " + quote(d.Name), "DELETE FROM ledger.role WHERE database_id = " + quote(d.ID),
		"DELETE FROM ledger.database WHERE id = " + quote(d.ID),
	}
	if err = atomically(ctx, x.db, append(drop, forget...)...); !isKept(err) {
		return err
	}
	if err = atomically(ctx, x.db, append(bury, forget...)...); err == nil {
		x.wakeBurial()
	}
	return err
}
