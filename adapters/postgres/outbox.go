package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/ports"
)

var outboxTable = pgdb.TableOf[ports.OutboxEvent]("outbox_events").Added("RETURNING pg_notify('" + dispatchChannel + "', '')")

var (
	forgetDeliveries = pgdb.Written(`
		WITH old AS MATERIALIZED (
			SELECT id FROM webhook_deliveries WHERE finished_at < $1 AND status IN ('delivered', 'failed')
			ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED
		), attempts AS (
			DELETE FROM webhook_attempts a USING old WHERE a.delivery_id = old.id
		)
		DELETE FROM webhook_deliveries d USING old WHERE d.id = old.id`)
	forgetEvents = pgdb.Written(`
		DELETE FROM outbox_events WHERE id IN (
			SELECT e.id FROM outbox_events e WHERE e.taken AND e.created_at < $1
				AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_id = e.id)
			ORDER BY e.created_at, e.id LIMIT $2 FOR UPDATE SKIP LOCKED)`)
	takeEvents = pgdb.Written(`
		WITH waiting AS MATERIALIZED (
			SELECT id FROM outbox_events WHERE taken IS NULL
			ORDER BY created_at, id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
		), taken AS (
			UPDATE outbox_events t SET taken = true FROM waiting w WHERE t.id = w.id
			RETURNING ` + outboxTable.Row("t") + `
		)
		SELECT * FROM taken ORDER BY created_at, id`)
)

type outbox struct{ pgdb.Rows[ports.OutboxEvent] }

func (o outbox) Forget(ctx context.Context, before time.Time, limit int) error {
	if err := o.Write(ctx, forgetDeliveries, before, limit); err != nil {
		return err
	}
	return o.Write(ctx, forgetEvents, before, limit)
}

func (d deliveries) TakeEvents(ctx context.Context, limit int) ([]ports.OutboxEvent, error) {
	if d.InView() {
		return nil, ports.ErrReadOnly
	}
	return pgdb.All[ports.OutboxEvent](ctx, d.Session, takeEvents, limit)
}
