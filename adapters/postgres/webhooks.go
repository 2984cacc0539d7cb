package postgres

import (
	"context"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

var (
	webhookTable = tableOf[webhook.Endpoint]("webhook_endpoints").withOptional("created_by")

	webhookChanges = []string{"sealed_secret", "consecutive_failures", "disabled_at", "updated_at"}
)

// wantingWebhooks begins a SELECT of the endpoints for which webhook.Endpoint.Wants is true.
func wantingWebhooks() sq.SelectBuilder {
	return webhookTable.read().Where("t.account_id = ? AND t.disabled_at IS NULL").
		Where("(t.database_id IS NULL OR t.database_id = ?)").OrderBy("t.created_at", "t.id")
}

var (
	addWebhook   = define(webhookTable.insert())
	addLane      = written("INSERT INTO webhook_lanes (webhook_id, turn) VALUES ($1, 0)")
	getWebhook   = define(webhookTable.read().Where("t.account_id = ? AND t.id = ?"))
	lockWebhook  = define(webhookTable.read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	listWebhooks = define(webhookTable.read().Where("t.account_id = ? AND (t.created_at, t.id) > (?, ?)").
			OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))
	countEnabled = written("SELECT count(*) FROM webhook_endpoints WHERE account_id = $1 AND disabled_at IS NULL")
	wanting      = define(wantingWebhooks())
	holdWanting  = define(wantingWebhooks().Suffix("FOR SHARE"))
	saveWebhook  = define(webhookTable.update(webhookChanges, "id = ?"))
)

type webhooks struct{ session }

func (w webhooks) Add(ctx context.Context, e webhook.Endpoint) error {
	if err := w.write(ctx, addWebhook, webhookTable.values(e)...); err != nil {
		return err
	}
	return w.write(ctx, addLane, e.ID)
}

func (w webhooks) Get(ctx context.Context, account id.AccountID, of id.WebhookID) (webhook.Endpoint, error) {
	return one[webhook.Endpoint](ctx, w.session, getWebhook, account, of)
}

func (w webhooks) Lock(ctx context.Context, of id.WebhookID) (webhook.Endpoint, error) {
	return locked[webhook.Endpoint](ctx, w.session, lockWebhook, of)
}

func (w webhooks) List(ctx context.Context, account id.AccountID, p ports.Page) ([]webhook.Endpoint, error) {
	return pageOf[webhook.Endpoint](ctx, w.session, listWebhooks, forward, p, account)
}

// LockEnabled locks the account. It counts in a separate statement, which sees what the previous holder of the lock has
// committed.
func (w webhooks) LockEnabled(ctx context.Context, account id.AccountID) (int, error) {
	if _, err := accounts(w).LockForQuota(ctx, account); err != nil {
		return 0, err
	}
	return one[int](ctx, w.session, countEnabled, account)
}

func (w webhooks) Wanting(ctx context.Context, account id.AccountID, db id.DatabaseID) ([]webhook.Endpoint, error) {
	if w.tx == nil {
		return all[webhook.Endpoint](ctx, w.session, wanting, account, db)
	}
	return all[webhook.Endpoint](ctx, w.session, holdWanting, account, db)
}

func (w webhooks) Save(ctx context.Context, e webhook.Endpoint) error {
	return w.mustChange(ctx, ports.ErrNoRow, saveWebhook, append(valuesOf(e, webhookChanges), e.ID)...)
}
