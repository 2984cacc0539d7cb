package postgres

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/ports"
)

var keyRecordTable = pgdb.TableOf[idempotency.Record]("idempotency_keys")

var (
	// The insert waits for a concurrent transaction with the same key; if that commits, nothing is inserted.
	claimKey   = pgdb.Define(keyRecordTable.Insert().Suffix("ON CONFLICT (account_id, route, key) DO NOTHING"))
	getClaimed = pgdb.Define(keyRecordTable.Read().Where("t.account_id = ? AND t.route = ? AND t.key = ?"))
)

type idempotencyKeys struct{ pgdb.Rows[idempotency.Record] }

func (k idempotencyKeys) Claim(
	ctx context.Context, r idempotency.Record,
) (stored idempotency.Record, fresh bool, err error) {
	const attempts = 3 // the stored record may be removed between the two statements
	for range attempts {
		n, err := k.Change(ctx, claimKey, keyRecordTable.Values(r)...)
		if err != nil || n == 1 {
			return r, err == nil, err
		}
		stored, err = k.Get(ctx, r.AccountID, r.Route, r.Key)
		if !errors.Is(err, ports.ErrNoRow) {
			return stored, false, err
		}
	}
	return stored, false, errors.New("the idempotency key was stored and removed again and again")
}

func (k idempotencyKeys) Get(
	ctx context.Context, of id.AccountID, route string, key idempotency.Key,
) (idempotency.Record, error) {
	return k.One(ctx, getClaimed, of, route, key)
}
