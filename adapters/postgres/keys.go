package postgres

import (
	"context"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var (
	keyTable       = pgdb.TableOf[account.Key]("api_keys").WithOptional("namespace_id", "trust_id").Added()
	namespaceTable = pgdb.TableOf[account.Namespace]("ci_namespaces").Added()
)

var (
	bindKey = pgdb.Written(`INSERT INTO key_databases (key_id, database_id) SELECT DISTINCT $1, unnest($2::uuid[])`)
	getKey  = pgdb.Define(keyTable.Read().Where("t.id = ?"))
	lockKey = pgdb.Define(keyTable.Read().Where("t.id = ?").Suffix("FOR NO KEY UPDATE OF t"))
	// Bindings follow the new ID by ON UPDATE CASCADE.
	replaceKey   = pgdb.Define(keyTable.Update([]string{"id", "hash"}, "id = ?"))
	bindToLimits = pgdb.Define(keyTable.Update([]string{"expires_at", "networks"}, "id = ?"))
	revokeKey    = pgdb.Define(keyTable.Update([]string{"revoked_at"}, "id = ?"))
	listKeys     = pgdb.Define(keyTable.Read().Where("t.account_id = ?").OrderBy("t.created_at DESC", "t.id DESC"))
	getNamespace = pgdb.Define(namespaceTable.Read().Where("t.id = ?"))
)

type keys struct{ pgdb.Rows[account.Key] }

func (k keys) Add(ctx context.Context, key account.Key, databases []id.DatabaseID) error {
	if err := k.Rows.Add(ctx, key); err != nil || len(databases) == 0 {
		return err
	}
	return k.Write(ctx, bindKey, key.ID, pq.Array(databases))
}

func (k keys) Get(ctx context.Context, key id.KeyID) (account.Key, error) {
	return k.One(ctx, getKey, key)
}

func (k keys) Lock(ctx context.Context, key id.KeyID) (account.Key, error) {
	return k.One(ctx, lockKey, key)
}

func (k keys) List(ctx context.Context, of id.AccountID) ([]account.Key, error) {
	return k.All(ctx, listKeys, of)
}

func (k keys) Replace(ctx context.Context, old id.KeyID, key account.Key) error {
	return k.MustChange(ctx, ports.ErrNoRow, replaceKey, key.ID, key.Hash, old)
}

func (k keys) Bind(ctx context.Context, key account.Key) error {
	return k.MustChange(ctx, ports.ErrNoRow, bindToLimits, key.ExpiresAt, key.Networks, key.ID)
}

func (k keys) Revoke(ctx context.Context, key account.Key) error {
	return k.MustChange(ctx, ports.ErrNoRow, revokeKey, key.RevokedAt, key.ID)
}
