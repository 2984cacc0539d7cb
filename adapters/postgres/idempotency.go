package postgres

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/ports"
)

var keyRecordTable = tableOf[idempotency.Record]("idempotency_keys")

var (
	// The insert waits for a concurrent transaction with the same key; if that commits, nothing is inserted.
	claimKey   = define(keyRecordTable.insert().Suffix("ON CONFLICT (account_id, route, key) DO NOTHING"))
	getClaimed = define(keyRecordTable.read().Where("t.account_id = ? AND t.route = ? AND t.key = ?"))
)

type idempotencyKeys struct{ session }

func (k idempotencyKeys) Claim(
	ctx context.Context, r idempotency.Record,
) (stored idempotency.Record, fresh bool, err error) {
	const attempts = 3 // the stored record may be removed between the two statements
	for range attempts {
		n, err := k.change(ctx, claimKey, keyRecordTable.values(r)...)
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
	return one[idempotency.Record](ctx, k.session, getClaimed, of, route, key)
}
