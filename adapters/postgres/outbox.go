package postgres

import (
	"context"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/ports"
)

var outboxTable = tableOf[ports.OutboxEvent]("outbox_events")

var (
	addEvent = define(func() sq.Sqlizer {
		return outboxTable.insert().Suffix("RETURNING pg_notify('" + dispatchChannel + "', '')")
	})
	takeEvents = written(`
		WITH waiting AS MATERIALIZED (
			SELECT id FROM outbox_events WHERE taken IS NULL
			ORDER BY created_at, id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
		), taken AS (
			UPDATE outbox_events t SET taken = true FROM waiting w WHERE t.id = w.id
			RETURNING ` + outboxTable.row("t") + `
		)
		SELECT * FROM taken ORDER BY created_at, id`)
)

type outbox struct{ session }

func (o outbox) Add(ctx context.Context, e ports.OutboxEvent) error {
	return o.write(ctx, addEvent, outboxTable.values(e)...)
}

func (d deliveries) TakeEvents(ctx context.Context, limit int) ([]ports.OutboxEvent, error) {
	if d.tx == nil {
		return nil, ports.ErrReadOnly
	}
	return all[ports.OutboxEvent](ctx, d.session, takeEvents, limit)
}
