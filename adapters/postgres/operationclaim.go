package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

const (
	waitingSince = "greatest(o.not_before, o.lease_until)"
	inLane       = "o.account_id = l.account_id AND o.server_id = l.server_id AND o.kind = l.kind AND o." + open
)

// isWanted is the condition of a lane l that is due and that the worker may have. Its parameters are $1 now, $2 kinds, $3
// accounts and $4 servers to be left out.
const isWanted = "l.due_at <= $1 AND l.kind = ANY($2) AND l.account_id <> ALL($3) AND l.server_id <> ALL($4)"

// fairestLane locks the lane that is to be served next, with its account. SKIP LOCKED gives each of several hosts another one.
// The accounts are in the order of operation_accounts_in_turn, so that only the lanes of the first ones are looked at, however
// many there are. Its parameters are those of isWanted.
const fairestLane = `
	WITH lane AS MATERIALIZED (
		SELECT l.* FROM operation_accounts a JOIN operation_lanes l ON l.account_id = a.account_id
		WHERE ` + isWanted + `
		ORDER BY a.turn, a.since, l.turn, l.due_at, l.account_id, l.server_id, l.kind
		LIMIT 1 FOR NO KEY UPDATE OF a, l SKIP LOCKED
	)`

// fromLane claims what has been due longest in a lane l. Its parameters are $1 now, $5 the owner and $6 the end of the lease. The
// operations of a lane are in the order of operations_due, named whole, so that no other index is taken for it.
var fromLane = `, first AS MATERIALIZED (
			SELECT f.id FROM lane l CROSS JOIN LATERAL (
				SELECT o.id FROM operations o WHERE ` + inLane + ` AND ` + waitingSince + ` <= $1
				ORDER BY o.account_id, o.server_id, o.kind, ` + waitingSince + `, o.created_at, o.id
				LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) f
		), served AS (
			UPDATE operation_lanes s SET turn = nextval('operation_turns') FROM lane l
			WHERE (s.account_id, s.server_id, s.kind) = (l.account_id, l.server_id, l.kind) AND EXISTS (SELECT FROM first)
			RETURNING s.account_id, s.turn
		), turned AS (
			UPDATE operation_accounts a SET turn = s.turn FROM served s WHERE a.account_id = s.account_id
		)
		UPDATE operations t
		SET status = 'running', lease_owner = $5, lease_epoch = t.lease_epoch + 1, lease_until = $6,
			attempts = t.attempts + 1, started_at = coalesce(t.started_at, $1)
		FROM first WHERE t.id = first.id
		RETURNING ` + operationTable.Row("t")

var (
	claimOperation = pgdb.Written(fairestLane + fromLane)
	// A statement of its own, after the lane was locked: whoever had it before may have left operations.
	claimInLane = pgdb.Written(`WITH lane AS MATERIALIZED (
		SELECT l.* FROM operation_lanes l WHERE l.account_id = $2 AND l.server_id = $3 AND l.kind = $4)` + fromLane)
	claimOne = pgdb.Written(`
		UPDATE operations t
		SET status = 'running', lease_owner = $3, lease_epoch = t.lease_epoch + 1, lease_until = $4,
			attempts = t.attempts + 1, started_at = coalesce(t.started_at, $1)
		WHERE t.id = $5 AND t.` + open + ` AND t.kind = ANY($2) AND (t.lease_until IS NULL OR t.lease_until <= $1)
		RETURNING ` + operationTable.Row("t"))
	anyDue  = pgdb.Written("SELECT 1 FROM operation_lanes l WHERE " + isWanted + " LIMIT 1")
	dueLane = pgdb.Written(fairestLane + " SELECT account_id, server_id, kind FROM lane")
	// Statements of their own, after the lane was locked, so that they see every operation that was made due before.
	leaveLane = pgdb.Written(`
		UPDATE operation_lanes l SET due_at = greatest($4, (SELECT min(` + waitingSince + `) FROM operations o WHERE ` + inLane + `))
		WHERE l.account_id = $1 AND l.server_id = $2 AND l.kind = $3
			AND EXISTS (SELECT FROM operations o WHERE ` + inLane + `)`)
	removeLane = pgdb.Written("DELETE FROM operation_lanes WHERE account_id = $1 AND server_id = $2 AND kind = $3")
	// A statement of its own, after the account was held, so that it sees every lane that was added before.
	holdAccount   = pgdb.Written("SELECT 1 FROM operation_accounts WHERE account_id = $1 FOR UPDATE SKIP LOCKED")
	removeAccount = pgdb.Written(`DELETE FROM operation_accounts a WHERE account_id = $1
		AND NOT EXISTS (SELECT FROM operation_lanes l WHERE l.account_id = a.account_id)`)
)

// lane is the open operations of an account on a server that are of one kind.
type lane struct {
	AccountID id.AccountID   `db:"account_id"`
	ServerID  id.ServerID    `db:"server_id"`
	Kind      operation.Kind `db:"kind"`
}

// laneRest is how long a lane is left alone in which another transaction holds all that is due.
const laneRest = 50 * time.Millisecond

// ClaimNext claims in one statement, unless others hold what it sees. Then a lane is locked and looked at alone; where it has
// nothing for now, that is noted, and the next lane is tried. Where other transactions hold all lanes that are left, the claim is
// run again, and waits for none of them.
func (o operations) ClaimNext(ctx context.Context, c ports.OperationClaim) (operation.Operation, error) {
	if c.Only != "" {
		return plain(o.Locked(ctx, claimOne, c.Now, pgdb.Listed(c.Kinds), c.Owner, c.Now.Add(c.Hold), c.Only))
	}
	fair := []any{c.Now, pgdb.Listed(c.Kinds), pgdb.Listed(c.NotOf), pgdb.Listed(c.NotOn)}
	for {
		claimed, err := plain(o.Locked(ctx, claimOperation, append(fair, c.Owner, c.Now.Add(c.Hold))...))
		if !errors.Is(err, ports.ErrNoRow) {
			return claimed, err
		}
		if _, err := pgdb.Locked[int](ctx, o.Session, anyDue, fair...); err != nil {
			return operation.Operation{}, err
		}
		due, err := pgdb.Locked[lane](ctx, o.Session, dueLane, fair...)
		switch {
		case errors.Is(err, ports.ErrNoRow):
			return operation.Operation{}, pgdb.ErrContended
		case err != nil:
			return operation.Operation{}, err
		}
		claimed, err = plain(o.Locked(ctx, claimInLane,
			c.Now, due.AccountID, due.ServerID, due.Kind, c.Owner, c.Now.Add(c.Hold)))
		if !errors.Is(err, ports.ErrNoRow) {
			return claimed, err
		}
		if err := o.leave(ctx, due, c.Now.Add(laneRest)); err != nil {
			return operation.Operation{}, err
		}
	}
}

// leave notes when a lane that is locked will be due again, or removes it, and its account with the last one. An account to which
// another transaction adds a lane stays.
func (o operations) leave(ctx context.Context, l lane, notBefore time.Time) error {
	key := []any{l.AccountID, l.ServerID, l.Kind}
	n, err := o.Change(ctx, leaveLane, append(key, notBefore)...)
	if err != nil || n > 0 {
		return err
	}
	if err := o.Write(ctx, removeLane, key...); err != nil {
		return err
	}
	switch _, err := pgdb.Locked[int](ctx, o.Session, holdAccount, l.AccountID); {
	case errors.Is(err, ports.ErrNoRow):
		return nil
	case err != nil:
		return err
	}
	return o.Write(ctx, removeAccount, l.AccountID)
}
