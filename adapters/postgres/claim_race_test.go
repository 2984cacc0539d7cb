package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/fakes/fakeentropy"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestSlowClaimsKeepTheCap lets claims take long, because very many endpoints wait. While one is looking, another delivery of
// the endpoint that comes first arrives, is due even longer, and is claimed: the slow claim must not go by what it counted.
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
		d := webhook.NewDelivery(id.FromBytes[id.DeliveryID](entropy.UUID()), first,
			id.FromBytes[id.EventID](entropy.UUID()), "backup.failed", nil, due)
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
