package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
)

var ringKeyTable = tableOf[keyring.Key]("keyring_keys")

var (
	lockRing = written("INSERT INTO keyring_turn (one) VALUES (true) ON CONFLICT (one) DO UPDATE SET one = true")
	ringKeys = define(ringKeyTable.read().OrderBy(`t.fingerprint COLLATE "C"`))
	putKey   = define(ringKeyTable.insert().Suffix(`ON CONFLICT (fingerprint) DO UPDATE SET
		status = excluded.status, since = excluded.since, resealed_at = excluded.resealed_at`))
	ringHosts  = written(`SELECT id, name, keys, seals, seen_at FROM keyring_hosts ORDER BY name COLLATE "C", id`)
	reportHost = written(`
		INSERT INTO keyring_hosts (id, name, keys, seals, seen_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, keys = excluded.keys, seals = excluded.seals,
			seen_at = excluded.seen_at`)
	forgetHost        = written("DELETE FROM keyring_hosts WHERE id = $1")
	forgetHostsBefore = written("DELETE FROM keyring_hosts WHERE seen_at < $1")
)

type keyRings struct{ session }

func (k keyRings) Lock(ctx context.Context) error { return k.write(ctx, lockRing) }

func (k keyRings) Keys(ctx context.Context) (keyring.Keys, error) {
	return all[keyring.Key](ctx, k.session, ringKeys)
}

func (k keyRings) Put(ctx context.Context, key keyring.Key) error {
	return k.write(ctx, putKey, ringKeyTable.values(key)...)
}

func (k keyRings) Hosts(ctx context.Context) ([]keyring.Host, error) {
	type row struct {
		ID     id.RingHostID       `db:"id"`
		Name   string              `db:"name"`
		Keys   pq.StringArray      `db:"keys"`
		Seals  keyring.Fingerprint `db:"seals"`
		SeenAt time.Time           `db:"seen_at"`
	}
	rows, err := all[row](ctx, k.session, ringHosts)
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
	return k.write(ctx, reportHost, h.ID, h.Name, keys, h.Seals, h.SeenAt)
}

func (k keyRings) Forget(ctx context.Context, h id.RingHostID) error {
	return k.write(ctx, forgetHost, h)
}

func (k keyRings) ForgetBefore(ctx context.Context, seen time.Time) error {
	return k.write(ctx, forgetHostsBefore, seen)
}
