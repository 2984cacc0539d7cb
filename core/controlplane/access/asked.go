package access

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/ports"
)

// Asked says whether the database's account has used a key on a route: what the first request with it has asked of the agent is
// not asked again. Without a key, every request is another one.
func (r Reached) Asked(ctx context.Context, p *base.Base, route string, key idempotency.Key) (bool, error) {
	if key == "" {
		return false, nil
	}
	_, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) (idempotency.Record, error) {
		return tx.Idempotency().Get(ctx, r.record.AccountID, route, key)
	})
	if errors.Is(err, ports.ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}
