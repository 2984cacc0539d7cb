package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// addDue makes so many endpoints, each with so many deliveries that are due.
func addDue(t testing.TB, db clustertest.Database, endpoints, each int) {
	t.Helper()
	clustertest.Exec(t, db.URL,
		fmt.Sprintf(`INSERT INTO webhook_endpoints (id, account_id, url, sealed_secret, consecutive_failures, created_at, updated_at)
			SELECT gen_random_uuid(), a.id, 'u', '', 0, 'epoch', 'epoch' FROM accounts a, generate_series(1, %d)`, endpoints),
		"INSERT INTO webhook_lanes SELECT id, 0 FROM webhook_endpoints",
		fmt.Sprintf(`INSERT INTO webhook_deliveries SELECT gen_random_uuid(), e.id, e.account_id, gen_random_uuid(), 'backup.succeeded',
			'{"id": "x"}', 'pending', 0, 0, 'epoch', NULL, '', 0, NULL, 'epoch'
			FROM webhook_endpoints e, generate_series(1, %d)`, each))
}

// BenchmarkDispatch claims a delivery and records that it arrived, as eight dispatchers do.
func BenchmarkDispatch(b *testing.B) {
	for _, endpoints := range []int{1, 50, 500} {
		b.Run(fmt.Sprint(endpoints, " endpoints"), func(b *testing.B) { dispatch(b, endpoints, 50_000/endpoints) })
	}
}

func dispatch(b *testing.B, endpoints, each int) {
	db := migrated(b)
	populate(b, db, 1)
	addDue(b, db, endpoints, each)
	store := open(b, db)
	b.ResetTimer()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := deliverNext(b.Context(), store, time.Unix(1, 0).UTC()); err != nil && !errors.Is(err, ports.ErrNoRow) {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

// deliverNext claims in one transaction and settles in another.
func deliverNext(ctx context.Context, store *postgres.Store, now time.Time) (err error) {
	var d webhook.Delivery
	err = store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		d, err = tx.Deliveries().ClaimNext(ctx, "dispatcher", now, webhook.Hold, 8)
		return err
	})
	if err != nil {
		return err
	}
	return store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		e, err := tx.Webhooks().Lock(ctx, d.WebhookID)
		if err != nil {
			return err
		}
		s, err := webhook.Settle(d, e, webhook.Outcome{StatusCode: 200}, now, now, 0)
		if err != nil {
			return err
		}
		if err := tx.Webhooks().Save(ctx, s.Endpoint); err != nil {
			return err
		}
		return tx.Deliveries().SaveLeased(ctx, s.Delivery, &s.Attempt)
	})
}
