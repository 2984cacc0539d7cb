package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
)

var ringKeyTable = pgdb.TableOf[keyring.Key]("keyring_keys")

var (
	lockRing = pgdb.Written("INSERT INTO keyring_turn (one) VALUES (true) ON CONFLICT (one) DO UPDATE SET one = true")
	ringKeys = pgdb.Define(ringKeyTable.Read().OrderBy(`t.fingerprint COLLATE "C"`))
	putKey   = pgdb.Define(ringKeyTable.Insert().Suffix(`ON CONFLICT (fingerprint) DO UPDATE SET
		status = excluded.status, since = excluded.since, resealed_at = excluded.resealed_at`))
	ringHosts  = pgdb.Written(`SELECT id, name, keys, seals, seen_at FROM keyring_hosts ORDER BY name COLLATE "C", id`)
	reportHost = pgdb.Written(`
		INSERT INTO keyring_hosts (id, name, keys, seals, seen_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, keys = excluded.keys, seals = excluded.seals,
			seen_at = excluded.seen_at`)
	forgetHost        = pgdb.Written("DELETE FROM keyring_hosts WHERE id = $1")
	forgetHostsBefore = pgdb.Written("DELETE FROM keyring_hosts WHERE seen_at < $1")
)

type keyRings struct{ pgdb.Rows[keyring.Key] }

func (k keyRings) Lock(ctx context.Context) error { return k.Write(ctx, lockRing) }

func (k keyRings) Keys(ctx context.Context) (keyring.Keys, error) {
	return k.All(ctx, ringKeys)
}

func (k keyRings) Put(ctx context.Context, key keyring.Key) error {
	return k.Write(ctx, putKey, ringKeyTable.Values(key)...)
}

func (k keyRings) Hosts(ctx context.Context) ([]keyring.Host, error) {
	type row struct {
		ID     id.RingHostID       `db:"id"`
		Name   string              `db:"name"`
		Keys   pq.StringArray      `db:"keys"`
		Seals  keyring.Fingerprint `db:"seals"`
		SeenAt time.Time           `db:"seen_at"`
	}
	rows, err := pgdb.All[row](ctx, k.Session, ringHosts)
	var list []keyring.Host
	for _, r := range rows {
		host := keyring.Host{ID: r.ID, Name: r.Name, Seals: r.Seals, SeenAt: r.SeenAt}
		for _, key := range r.Keys {
			host.Keys = append(host.Keys, keyring.Fingerprint(key))
		}
		list = append(list, host)
	}
	return list, err
}

func (k keyRings) Report(ctx context.Context, h keyring.Host) error {
	keys := make(pq.StringArray, len(h.Keys))
	for i, key := range h.Keys {
		keys[i] = string(key)
	}
	return k.Write(ctx, reportHost, h.ID, h.Name, keys, h.Seals, h.SeenAt)
}

func (k keyRings) Forget(ctx context.Context, h id.RingHostID) error {
	return k.Write(ctx, forgetHost, h)
}

func (k keyRings) ForgetBefore(ctx context.Context, seen time.Time) error {
	return k.Write(ctx, forgetHostsBefore, seen)
}
