package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestSlowClaimsKeepTheCap lets claims of deliveries take long, because very many endpoints wait; mails are claimed by the same
// statements. While one is looking, another delivery of the endpoint that comes first arrives, is due even longer, and is
// claimed: the slow claim must not go by what it counted.
func TestSlowClaimsKeepTheCap(t *testing.T) {
	db := migrated(t)
	populate(t, db, 1)
	addDue(t, db, 1500, 1)
	store, entropy, now := open(t, db), fakeentropy.New(), time.Unix(1, 0).UTC()
	first := webhook.Endpoint{
		ID: id.FromBytes[id.WebhookID](entropy.UUID()), AccountID: "00000000-0000-4000-8000-000000000002", SealedSecret: []byte{},
	}
	do := func(fn func(ctx context.Context, tx ports.Tx) error) {
		if err := store.Update(t.Context(), fn); err != nil && !errors.Is(err, ports.ErrNoRow) {
			t.Error(err)
		}
	}
	add := func(due time.Time) {
		d := webhook.NewDelivery(id.FromBytes[id.DeliveryID](entropy.UUID()), first, webhook.Content{
			ID:          id.FromBytes[id.EventID](entropy.UUID()),
			OperationID: id.FromBytes[id.OperationID](entropy.UUID()), Name: "backup.failed",
		}, due)
		do(func(ctx context.Context, tx ports.Tx) error { return tx.Deliveries().Add(ctx, []webhook.Delivery{d}) })
	}
	claim := func() {
		do(func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Deliveries().ClaimNext(ctx, "d", now, webhook.Hold, 1)
			return err
		})
	}
	do(func(ctx context.Context, tx ports.Tx) error { return tx.Webhooks().Add(ctx, first) })
	for round := range 20 {
		add(now.Add(-time.Hour))
		var both sync.WaitGroup
		both.Go(claim)
		both.Go(func() {
			time.Sleep(time.Duration(round) * time.Millisecond / 4)
			add(now.Add(-2 * time.Hour))
			claim()
		})
		both.Wait()
		var leased int
		err := db.Open(t).QueryRow("SELECT count(*) FROM webhook_deliveries WHERE webhook_id = $1 AND status = 'delivering'",
			first.ID).Scan(&leased)
		if err != nil || leased != 1 {
			t.Fatalf("round %d: %d are leased at one endpoint, want 1 (%v)", round, leased, err)
		}
		clustertest.Exec(t, db.URL, "UPDATE webhook_deliveries SET status = 'failed', lease_until = NULL WHERE webhook_id = '"+
			string(first.ID)+"'", "UPDATE webhook_deliveries SET status = 'pending', lease_until = NULL WHERE status = 'delivering'",
			"UPDATE webhook_lanes SET turn = 0")
	}
}

// addDue makes so many endpoints, each with so many deliveries that are due.
func addDue(t testing.TB, db clustertest.Database, endpoints, each int) {
	t.Helper()
	clustertest.Exec(t, db.URL,
		fmt.Sprintf(`INSERT INTO webhook_endpoints (id, account_id, url, sealed_secret, consecutive_failures, created_at, updated_at)
			SELECT gen_random_uuid(), a.id, 'u', '', 0, 'epoch', 'epoch' FROM accounts a, generate_series(1, %d)`, endpoints),
		"INSERT INTO webhook_lanes SELECT id, 0 FROM webhook_endpoints",
		fmt.Sprintf(`INSERT INTO webhook_deliveries
			SELECT gen_random_uuid(), e.id, e.account_id, gen_random_uuid(), gen_random_uuid(), '', 'backup.succeeded',
			'{"id": "x"}', 'pending', 0, 0, 'epoch', NULL, '', 0, NULL, 'epoch'
			FROM webhook_endpoints e, generate_series(1, %d)`, each))
}
