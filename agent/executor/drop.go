package executor

import "context"

// dependentObjects is what PostgreSQL says of a role that something still refers to.
const dependentObjects = "2BP01"

// dropWait bounds how long the drop of a role waits. Anyone who knows a role's name can grant to it in a transaction and keep
// that open: no privilege shows yet, and the drop would wait for as long as it lasts.
const dropWait = "SET LOCAL lock_timeout = '1s'"

// isKept reports whether a role was not dropped because something refers to it, or somebody's transaction is about to.
func isKept(err error) bool { return sqlState(err) == dependentObjects || inTheWay(err) }

// dropLogins drops the roles of a database that are still those we made, and forgets the database: all or nothing. Where others
// keep one of them, all are buried.
func (x *Executor) dropLogins(ctx context.Context, d databaseRow) error {
	const query = `SELECT r.rolname FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.database_id = $1 ORDER BY 1`
	roles, err := x.names(ctx, query, d.ID)
	if err != nil {
		return err
	}
	drop, bury := []string{dropWait}, []string{dropWait}
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
