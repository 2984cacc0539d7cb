package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/pgherd/pgherd/adapters/postgres"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
	"github.com/pgherd/pgherd/ports"
)

// TestEventsFromBeforeWebhooksGoNowhere upgrades a store that has an event already, while a process from before the upgrade
// still writes.
func TestEventsFromBeforeWebhooksGoNowhere(t *testing.T) {
	db := clustertest.NewDatabase(t)
	provider, err := goose.NewProvider(goose.DialectPostgres, db.Open(t), os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	addAsBefore := func(event id.EventID) {
		clustertest.Exec(t, db.URL, fmt.Sprintf(`INSERT INTO outbox_events
			(id, account_id, database_id, operation_id, name, payload, created_at)
			SELECT '%[1]s', '%[1]s', '%[1]s', '%[1]s', 'backup.succeeded', '{}', 'epoch'`, event))
	}
	addAsBefore("00000000-0000-4000-8000-000000000001")
	if err := postgres.Migrate(t.Context(), db.URL); err != nil {
		t.Fatal(err)
	}
	const after = id.EventID("00000000-0000-4000-8000-000000000002")
	addAsBefore(after)
	err = open(t, db).Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		taken, err := tx.Deliveries().TakeEvents(ctx, 10)
		if len(taken) != 1 || taken[0].ID != after {
			t.Errorf("taken were %v, want the event from after the upgrade alone", taken)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
