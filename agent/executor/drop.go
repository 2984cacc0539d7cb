package executor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// dependentObjects is what PostgreSQL says of a role that something still refers to.
const dependentObjects = "2BP01"

// dropLogins drops the roles of a database that are still those we made, and forgets the database: all or nothing. Anyone who
// knows a role's name can grant to it, in a database of their own; such a role only loses login, password and name.
func (x *Executor) dropLogins(ctx context.Context, d databaseRow) error {
	const query = `SELECT r.rolname FROM ledger.role p JOIN pg_roles r ON r.oid = p.oid AND r.rolname = p.name
		WHERE p.database_id = $1 ORDER BY 1`
	roles, err := x.names(ctx, query, d.ID)
	if err != nil {
		return err
	}
	var drop, bury []string
	for _, r := range roles {
		drop = append(drop, "DROP ROLE "+ident(r))
		bury = append(bury, buryStatements(r)...)
	}
	forget := []string{
		"DELETE FROM pooler.gate WHERE database = " + quote(d.Name), "DELETE FROM ledger.role WHERE database_id = " + quote(d.ID),
		"DELETE FROM ledger.database WHERE id = " + quote(d.ID),
	}
	err = atomically(ctx, x.db, append(drop, forget...)...)
	if sqlState(err) != dependentObjects {
		return err
	}
	if err := atomically(ctx, x.db, append(bury, forget...)...); err != nil {
		return err
	}
	return x.SweepDead(ctx)
}

func buryStatements(role string) []string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	dead := "pgh_dead_" + hex.EncodeToString(random[:])
	return []string{
		"ALTER ROLE " + ident(role) + " NOLOGIN PASSWORD NULL", "ALTER ROLE " + ident(role) + " RENAME TO " + dead,
		fmt.Sprintf("INSERT INTO ledger.dead_role (name, oid) SELECT rolname, oid FROM pg_roles WHERE rolname = %s", quote(dead)),
	}
}

// SweepDead drops the dead roles that nothing refers to any more.
func (x *Executor) SweepDead(ctx context.Context) error {
	const query = `SELECT r.rolname FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name`
	names, err := x.names(ctx, query)
	for _, name := range names {
		dropped := atomically(ctx, x.db, "DROP ROLE "+ident(name), "DELETE FROM ledger.dead_role WHERE name = "+quote(name))
		if sqlState(dropped) != dependentObjects {
			err = errors.Join(err, dropped)
		}
	}
	return err
}
