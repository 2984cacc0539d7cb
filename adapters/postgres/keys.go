package postgres

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	keyTable       = tableOf[account.Key]("api_keys").withOptional("namespace_id", "trust_id")
	namespaceTable = tableOf[account.Namespace]("ci_namespaces")
)

var (
	addKey  = define(keyTable.insert())
	bindKey = written(`INSERT INTO key_databases (key_id, database_id) SELECT DISTINCT $1, unnest($2::uuid[])`)
	getKey  = define(keyTable.read().Where("t.id = ?"))
	lockKey = define(keyTable.read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE OF t"))
	// Bindings follow the new ID by ON UPDATE CASCADE.
	replaceKey   = define(keyTable.update([]string{"id", "hash"}, "id = ?"))
	bindToLimits = define(keyTable.update([]string{"expires_at", "networks"}, "id = ?"))
	revokeKey    = define(keyTable.update([]string{"revoked_at"}, "id = ?"))
	listKeys     = define(keyTable.read().Where("t.account_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	addNamespace = define(namespaceTable.insert())
	getNamespace = define(namespaceTable.read().Where("t.id = ?"))
)

type keys struct{ session }

func (k keys) Add(ctx context.Context, key account.Key, databases []id.DatabaseID) error {
	if err := k.write(ctx, addKey, keyTable.values(key)...); err != nil || len(databases) == 0 {
		return err
	}
	return k.write(ctx, bindKey, key.ID, pq.Array(databases))
}

func (k keys) Get(ctx context.Context, key id.KeyID) (account.Key, error) {
	return one[account.Key](ctx, k.session, getKey, key)
}

func (k keys) Lock(ctx context.Context, key id.KeyID) (account.Key, error) {
	return one[account.Key](ctx, k.session, lockKey, key)
}

func (k keys) List(ctx context.Context, of id.AccountID) ([]account.Key, error) {
	return all[account.Key](ctx, k.session, listKeys, of)
}

func (k keys) Replace(ctx context.Context, old id.KeyID, key account.Key) error {
	return k.mustChange(ctx, ports.ErrNoRow, replaceKey, key.ID, key.Hash, old)
}

func (k keys) Bind(ctx context.Context, key account.Key) error {
	return k.mustChange(ctx, ports.ErrNoRow, bindToLimits, key.ExpiresAt, key.Networks, key.ID)
}

func (k keys) Revoke(ctx context.Context, key account.Key) error {
	return k.mustChange(ctx, ports.ErrNoRow, revokeKey, key.RevokedAt, key.ID)
}

func (k keys) AddNamespace(ctx context.Context, n account.Namespace) error {
	return k.write(ctx, addNamespace, namespaceTable.values(n)...)
}

func (k keys) Namespace(ctx context.Context, namespace id.NamespaceID) (account.Namespace, error) {
	return one[account.Namespace](ctx, k.session, getNamespace, namespace)
}
