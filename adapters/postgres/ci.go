package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var trustTable = pgdb.TableOf[citoken.Trust]("ci_trusts").Added()

var (
	lockNamespace   = pgdb.Define(namespaceTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE"))
	listNamespaces  = pgdb.Define(namespaceTable.Read().Where("t.account_id = ?").OrderBy("t.created_at", "t.id"))
	revokeNamespace = pgdb.Define(namespaceTable.Update([]string{"revoked_at"}, "id = ?"))
	namespaceKeys   = pgdb.Define(keyTable.Read().Where("t.namespace_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	liveKeys        = pgdb.Written(`
		SELECT count(*) AS number, min(expires_at) AS first_end FROM api_keys
		WHERE namespace_id = $1 AND trust_id IS NOT NULL AND revoked_at IS NULL AND expires_at > $2`)
	// Keys are locked in the order of their IDs, as by whoever stores their last use.
	revokeNamespaceKeys = pgdb.Written(revokeKeysOf("namespace_id"))
	revokeTrustKeys     = pgdb.Written(revokeKeysOf("trust_id"))

	getTrust     = pgdb.Define(trustTable.Read().Where("t.id = ?"))
	listTrusts   = pgdb.Define(trustTable.Read().Where("t.namespace_id = ?").OrderBy("t.created_at", "t.id"))
	removeTrust  = pgdb.Written("DELETE FROM ci_trusts WHERE id = $1")
	removeTrusts = pgdb.Written("DELETE FROM ci_trusts WHERE namespace_id = $1")

	spendToken  = pgdb.Written("INSERT INTO ci_spent_tokens (mark, until) VALUES ($1, $2) ON CONFLICT DO NOTHING")
	sweepTokens = pgdb.Written(`DELETE FROM ci_spent_tokens WHERE mark IN
		(SELECT mark FROM ci_spent_tokens WHERE until < $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)`)
	sweepKeys = pgdb.Written(`DELETE FROM api_keys WHERE id IN
		(SELECT id FROM api_keys WHERE trust_id IS NOT NULL AND expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`)
)

func revokeKeysOf(column string) string {
	return `
		UPDATE api_keys k SET revoked_at = $1
		FROM (SELECT id FROM api_keys WHERE ` + column + ` = $2 AND revoked_at IS NULL ORDER BY id FOR NO KEY UPDATE) l
		WHERE k.id = l.id`
}

type namespaces struct{ pgdb.Rows[account.Namespace] }

func (n namespaces) Get(ctx context.Context, of id.NamespaceID) (account.Namespace, error) {
	return n.One(ctx, getNamespace, of)
}

func (n namespaces) Lock(ctx context.Context, of id.NamespaceID) (account.Namespace, error) {
	return n.Locked(ctx, lockNamespace, of)
}

func (n namespaces) List(ctx context.Context, of id.AccountID) ([]account.Namespace, error) {
	return n.All(ctx, listNamespaces, of)
}

func (n namespaces) Revoke(ctx context.Context, row account.Namespace) error {
	if err := n.MustChange(ctx, ports.ErrNoRow, revokeNamespace, row.RevokedAt, row.ID); err != nil {
		return err
	}
	if err := n.Write(ctx, removeTrusts, row.ID); err != nil {
		return err
	}
	return n.Write(ctx, revokeNamespaceKeys, row.RevokedAt, row.ID)
}

func (n namespaces) Keys(ctx context.Context, of id.NamespaceID) ([]account.Key, error) {
	return pgdb.All[account.Key](ctx, n.Session, namespaceKeys, of)
}

func (n namespaces) Live(ctx context.Context, of id.NamespaceID, now time.Time) (citoken.Live, error) {
	return pgdb.One[citoken.Live](ctx, n.Session, liveKeys, of, now)
}

type trusts struct{ pgdb.Rows[citoken.Trust] }

func (t trusts) Get(ctx context.Context, trust id.TrustID) (citoken.Trust, error) {
	return t.One(ctx, getTrust, trust)
}

func (t trusts) List(ctx context.Context, of id.NamespaceID) ([]citoken.Trust, error) {
	return t.All(ctx, listTrusts, of)
}

func (t trusts) Remove(ctx context.Context, trust id.TrustID, now time.Time) error {
	if err := t.MustChange(ctx, ports.ErrNoRow, removeTrust, trust); err != nil {
		return err
	}
	return t.Write(ctx, revokeTrustKeys, now, trust)
}

func (t trusts) Spend(ctx context.Context, s citoken.Spent) (bool, error) {
	n, err := t.Change(ctx, spendToken, s.Mark, s.Until)
	return n > 0, err
}

func (t trusts) Sweep(ctx context.Context, tokens, keys time.Time, limit int) (int, error) {
	forgotten, err := t.Change(ctx, sweepTokens, tokens, limit)
	if err != nil {
		return 0, err
	}
	removed, err := t.Change(ctx, sweepKeys, keys, limit)
	return int(forgotten + removed), err
}
