package postgres

import (
	"context"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/ports"
)

var outboxTable = tableOf[ports.OutboxEvent]("outbox_events")

var addEvent = define(func() sq.Sqlizer { return outboxTable.insert() })

type outbox struct{ session }

func (o outbox) Add(ctx context.Context, e ports.OutboxEvent) error {
	return o.write(ctx, addEvent, outboxTable.values(e)...)
}
