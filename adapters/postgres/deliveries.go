package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// dispatchChannel is where committed events, deliveries and mails are announced; see Notifier.Dispatchers.
const dispatchChannel = "pgherd_webhooks"

var (
	deliveryTable = pgdb.TableOf[webhook.Delivery]("webhook_deliveries")
	attemptTable  = pgdb.TableOf[webhook.Attempt]("webhook_attempts")

	deliveryChanges = []string{
		"status", "attempts_used", "attempts_total", "finished_at", "lease_owner", "lease_until", "not_before",
	}
)

const undelivered = "status IN ('pending', 'delivering')"

var (
	// Its arguments are arrays, one for each column.
	addDeliveries = pgdb.Written(`
		INSERT INTO webhook_deliveries (` + strings.Join(deliveryTable.Columns, ", ") + `)
		SELECT * FROM unnest(` + deliveryArrays() + `)
		ON CONFLICT (event_id, webhook_id) DO NOTHING
		RETURNING pg_notify('` + dispatchChannel + `', '')`)
	lockDelivery = pgdb.Define(deliveryTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	// A redelivery is due at once.
	saveDelivery = pgdb.Define(deliveryTable.Update(deliveryChanges, "id = ? AND lease_epoch = ?").Suffix(
		"RETURNING CASE WHEN status = 'pending' AND attempts_used = 0 THEN pg_notify('" + dispatchChannel + "', '') END"))
	saveWithAttempt = pgdb.Define(withAttempt(
		deliveryTable.Update(deliveryChanges, "id = ? AND lease_epoch = ?").Suffix("RETURNING webhook_id")))
	abandonDeliveries = pgdb.Written(`
		UPDATE webhook_deliveries SET status = 'failed', finished_at = $2, lease_owner = '', lease_until = NULL
		WHERE webhook_id = $1 AND ` + undelivered + ` AND status = 'pending'`)
	listAttempts = pgdb.Define(attemptTable.Read().Columns("d.event_id", "d.event", "d.status").
			Join("webhook_deliveries d ON d.id = t.delivery_id").
			Where("t.webhook_id = ? AND (t.at, t.delivery_id) < (?, ?)").
			OrderBy("t.at DESC", "t.delivery_id DESC", "t.number DESC").Suffix("LIMIT ?"))
	backlog = pgdb.Written(`
		SELECT count(*) AS count, min(w.created_at) AS oldest FROM (
			SELECT d.created_at FROM webhook_deliveries d
			JOIN webhook_endpoints e ON e.id = d.webhook_id AND e.disabled_at IS NULL
			WHERE d.` + undelivered + `
			UNION ALL SELECT created_at FROM outbox_events WHERE taken IS NULL) w`)
)

// withAttempt also adds an attempt at what is saved, if anything is.
func withAttempt(save sq.UpdateBuilder) sq.InsertBuilder {
	attempt := sq.Select("webhook_id").From("saved")
	for range attemptTable.Columns {
		attempt = attempt.Column("?", nil)
	}
	return pgdb.Dollar.Insert("webhook_attempts").Columns(append([]string{"webhook_id"}, attemptTable.Columns...)...).
		PrefixExpr(sq.Expr("WITH saved AS (?)", save.PlaceholderFormat(sq.Question))).Select(attempt)
}

// deliveryArrays are the parameters of addDeliveries, with their types in the order of the columns.
func deliveryArrays() string {
	types := map[string]string{
		"id": "uuid", "webhook_id": "uuid", "account_id": "uuid", "event_id": "uuid", "operation_id": "uuid", "body": "json",
		"attempts_used": "integer", "attempts_total": "integer", "lease_epoch": "bigint", "created_at": "timestamptz",
		"finished_at": "timestamptz", "lease_until": "timestamptz", "not_before": "timestamptz",
	}
	arrays := make([]string, len(deliveryTable.Columns))
	for i, column := range deliveryTable.Columns {
		kind, ok := types[column]
		if !ok {
			kind = "text"
		}
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return strings.Join(arrays, ", ")
}

type deliveries struct{ pgdb.Rows[webhook.Delivery] }

func (d deliveries) Add(ctx context.Context, ds []webhook.Delivery) error {
	return d.Write(ctx, addDeliveries, deliveryTable.Arrays(ds)...)
}

func (d deliveries) Lock(ctx context.Context, of id.DeliveryID) (webhook.Delivery, error) {
	return d.Locked(ctx, lockDelivery, of)
}

func (d deliveries) SaveLeased(ctx context.Context, row webhook.Delivery, a *webhook.Attempt) error {
	arguments, statement := append(pgdb.ValuesOf(row, deliveryChanges), row.ID, row.Epoch), saveDelivery
	if a != nil {
		arguments, statement = append(arguments, attemptTable.Values(*a)...), saveWithAttempt
	}
	return d.MustChange(ctx, ports.ErrLeaseLost, statement, arguments...)
}

func (d deliveries) Abandon(ctx context.Context, w id.WebhookID, now time.Time) error {
	return d.Write(ctx, abandonDeliveries, w, now)
}

func (d deliveries) Attempts(ctx context.Context, w id.WebhookID, p ports.Page) ([]ports.WebhookAttempt, error) {
	return pgdb.PageOf[ports.WebhookAttempt](ctx, d.Session, listAttempts, pgdb.Backward, p, w)
}

func (d deliveries) Backlog(ctx context.Context) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, d.Session, backlog)
}
