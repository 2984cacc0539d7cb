package executor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Any customer can grant something in their own database to a role whose name they know, and so prevent it from being dropped
// for as long as they like. Such a role is buried instead: it loses login, password, grants and name, which others' grants
// cannot prevent. The remainder is dropped when nothing refers to it any more; no command waits for that.

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
	// deadPause is between two rounds of dropping dead roles.
	deadPause = 5 * time.Second
	// deadWait bounds how long each drop waits for other transactions.
	deadWait = "SET LOCAL lock_timeout = '100ms'"
)

// SweepDead drops the dead roles that nothing refers to any more, until ctx ends. It reads them from the ledger, so it
// continues a predecessor's work.
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

// wakeBurial wakes SweepDead after a burial: usually nothing refers to all but one of the buried roles.
func (x *Executor) wakeBurial() { wake(x.buried) }
