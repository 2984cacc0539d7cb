package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var trustTable = tableOf[citoken.Trust]("ci_trusts")

var (
	lockNamespace   = define(namespaceTable.read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	listNamespaces  = define(namespaceTable.read().Where("t.account_id = ?").OrderBy("t.created_at", "t.id"))
	revokeNamespace = define(namespaceTable.update([]string{"revoked_at"}, "id = ?"))
	namespaceKeys   = define(keyTable.read().Where("t.namespace_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	liveKeys        = written(`
		SELECT count(*) AS number, min(expires_at) AS first_end FROM api_keys
		WHERE namespace_id = $1 AND trust_id IS NOT NULL AND revoked_at IS NULL AND expires_at > $2`)
	// Keys are locked in the order of their IDs, as by whoever stores their last use.
	revokeNamespaceKeys = written(revokeKeysOf("namespace_id"))
	revokeTrustKeys     = written(revokeKeysOf("trust_id"))

	addTrust     = define(trustTable.insert())
	getTrust     = define(trustTable.read().Where("t.id = ?"))
	listTrusts   = define(trustTable.read().Where("t.namespace_id = ?").OrderBy("t.created_at", "t.id"))
	removeTrust  = written("DELETE FROM ci_trusts WHERE id = $1")
	removeTrusts = written("DELETE FROM ci_trusts WHERE namespace_id = $1")

	spendToken  = written("INSERT INTO ci_spent_tokens (mark, until) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	sweepTokens = written(`DELETE FROM ci_spent_tokens WHERE mark IN
		(SELECT mark FROM ci_spent_tokens WHERE until < $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)`)
	sweepKeys = written(`DELETE FROM api_keys WHERE id IN
		(SELECT id FROM api_keys WHERE trust_id IS NOT NULL AND expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
)

func revokeKeysOf(column string) string {
	return `
		UPDATE api_keys k SET revoked_at = $1
		FROM (SELECT id FROM api_keys WHERE ` + column + ` = $2 AND revoked_at IS NULL ORDER BY id FOR NO KEY UPDATE) l
		WHERE k.id = l.id`
}

type namespaces struct{ session }

func (n namespaces) Lock(ctx context.Context, of id.NamespaceID) (account.Namespace, error) {
	return locked[account.Namespace](ctx, n.session, lockNamespace, of)
}

func (n namespaces) List(ctx context.Context, of id.AccountID) ([]account.Namespace, error) {
	return all[account.Namespace](ctx, n.session, listNamespaces, of)
}

func (n namespaces) Revoke(ctx context.Context, row account.Namespace) error {
	if err := n.mustChange(ctx, ports.ErrNoRow, revokeNamespace, row.RevokedAt, row.ID); err != nil {
		return err
	}
	if err := n.write(ctx, removeTrusts, row.ID); err != nil {
		return err
	}
	return n.write(ctx, revokeNamespaceKeys, row.RevokedAt, row.ID)
}

func (n namespaces) Keys(ctx context.Context, of id.NamespaceID) ([]account.Key, error) {
	return all[account.Key](ctx, n.session, namespaceKeys, of)
}

func (n namespaces) Live(ctx context.Context, of id.NamespaceID, now time.Time) (citoken.Live, error) {
	return one[citoken.Live](ctx, n.session, liveKeys, of, now)
}

type trusts struct{ session }

func (t trusts) Add(ctx context.Context, row citoken.Trust) error {
	return t.write(ctx, addTrust, trustTable.values(row)...)
}

func (t trusts) Get(ctx context.Context, trust id.TrustID) (citoken.Trust, error) {
	return one[citoken.Trust](ctx, t.session, getTrust, trust)
}

func (t trusts) List(ctx context.Context, of id.NamespaceID) ([]citoken.Trust, error) {
	return all[citoken.Trust](ctx, t.session, listTrusts, of)
}

func (t trusts) Remove(ctx context.Context, trust id.TrustID, now time.Time) error {
	if err := t.mustChange(ctx, ports.ErrNoRow, removeTrust, trust); err != nil {
		return err
	}
	return t.write(ctx, revokeTrustKeys, now, trust)
}

func (t trusts) Spend(ctx context.Context, s citoken.Spent) (bool, error) {
	n, err := t.change(ctx, spendToken, s.Mark, s.Until)
	return n > 0, err
}

func (t trusts) Sweep(ctx context.Context, tokens, keys time.Time, limit int) (int, error) {
	forgotten, err := t.change(ctx, sweepTokens, tokens, limit)
	if err != nil {
		return 0, err
	}
	removed, err := t.change(ctx, sweepKeys, keys, limit)
	return int(forgotten + removed), err
}
