package executor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Anyone can grant to a role whose name they know, in a database of their own, and so keep it from being dropped for as long as
// they like. Such a role is buried instead: it loses login, password, grants and name, which no grant of others can hinder. What
// is left of it is dropped when nothing refers to it any more, and nobody waits for that.

func buryStatements(role string) []string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	dead := "pgh_dead_" + hex.EncodeToString(random[:])
	return []string{
		"ALTER ROLE " + ident(role) + " NOLOGIN PASSWORD NULL", "ALTER ROLE " + ident(role) + " RENAME TO " + dead,
		fmt.Sprintf("INSERT INTO ledger.dead_role (name, oid) SELECT rolname, oid FROM pg_roles WHERE rolname = %s", quote(dead)),
	}
}

const (
	// deadPause is between two looks at the dead roles.
	deadPause = 5 * time.Second
	// deadWait bounds how long each drop waits for transactions of others.
	deadWait = "SET LOCAL lock_timeout = '100ms'"
)

// SweepDead drops the dead roles that nothing refers to any more, until ctx ends. It goes by the ledger, so it takes up what a
// predecessor left.
func (x *Executor) SweepDead(ctx context.Context) {
	x.again(ctx, x.buried, "dead roles are not dropped", func(ctx context.Context) (time.Duration, error) {
		return deadPause, x.dropDead(ctx)
	})
}

// dropDead tries each dead role that nothing is seen to refer to, in a transaction of its own.
func (x *Executor) dropDead(ctx context.Context) error {
	const query = `SELECT r.rolname FROM ledger.dead_role d JOIN pg_roles r ON r.oid = d.oid AND r.rolname = d.name
		WHERE NOT EXISTS (SELECT FROM pg_shdepend s WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = d.oid)`
	names, err := x.names(ctx, query)
	for _, name := range names {
		dropped := atomically(ctx, x.db, deadWait, "DROP ROLE "+ident(name), "DELETE FROM ledger.dead_role WHERE name = "+quote(name))
		if !isKept(dropped) {
			err = errors.Join(err, dropped)
		}
	}
	return err
}

// wakeBurial says that roles were buried: most often nothing refers to all but one of them.
func (x *Executor) wakeBurial() { wake(x.buried) }
