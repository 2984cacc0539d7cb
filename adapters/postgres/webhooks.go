package postgres

import (
	"context"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

var (
	webhookTable = pgdb.TableOf[webhook.Endpoint]("webhook_endpoints").WithOptional("created_by").Added().
		Saved([]string{"id"}, []string{"sealed_secret", "consecutive_failures", "disabled_at", "updated_at"})
)

// wantingWebhooks begins a SELECT of the endpoints for which webhook.Endpoint.Wants is true.
func wantingWebhooks() sq.SelectBuilder {
	return webhookTable.Read().Where("t.account_id = ? AND t.disabled_at IS NULL").
		Where("(t.database_id IS NULL OR t.database_id = ?)").OrderBy("t.created_at", "t.id")
}

var (
	addLane      = pgdb.Written("INSERT INTO webhook_lanes (webhook_id, turn) VALUES ($1, 0)")
	getWebhook   = pgdb.Define(webhookTable.Read().Where("t.account_id = ? AND t.id = ?"))
	lockWebhook  = pgdb.Define(webhookTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	listWebhooks = pgdb.Define(webhookTable.Read().Where("t.account_id = ? AND (t.created_at, t.id) > (?, ?)").
			OrderBy("t.created_at", "t.id").Suffix("LIMIT ?"))
	countEnabled = pgdb.Written("SELECT count(*) FROM webhook_endpoints WHERE account_id = $1 AND disabled_at IS NULL")
	wanting      = pgdb.Define(wantingWebhooks())
	holdWanting  = pgdb.Define(wantingWebhooks().Suffix("FOR SHARE"))
)

type webhooks struct{ pgdb.Rows[webhook.Endpoint] }

func (w webhooks) Add(ctx context.Context, e webhook.Endpoint) error {
	if err := w.Rows.Add(ctx, e); err != nil {
		return err
	}
	return w.Write(ctx, addLane, e.ID)
}

func (w webhooks) Get(ctx context.Context, account id.AccountID, of id.WebhookID) (webhook.Endpoint, error) {
	return w.One(ctx, getWebhook, account, of)
}

func (w webhooks) Lock(ctx context.Context, of id.WebhookID) (webhook.Endpoint, error) {
	return w.Locked(ctx, lockWebhook, of)
}

func (w webhooks) List(ctx context.Context, account id.AccountID, p ports.Page) ([]webhook.Endpoint, error) {
	return w.Page(ctx, listWebhooks, pgdb.Forward, p, account)
}

// LockEnabled locks the account. It counts in a separate statement, which sees what the previous holder of the lock has
// committed.
func (w webhooks) LockEnabled(ctx context.Context, of id.AccountID) (int, error) {
	if _, err := pgdb.Locked[account.Account](ctx, w.Session, lockAccount, of); err != nil {
		return 0, err
	}
	return pgdb.One[int](ctx, w.Session, countEnabled, of)
}

func (w webhooks) Wanting(ctx context.Context, account id.AccountID, db id.DatabaseID) ([]webhook.Endpoint, error) {
	if w.InView() {
		return w.All(ctx, wanting, account, db)
	}
	return w.All(ctx, holdWanting, account, db)
}
