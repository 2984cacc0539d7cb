package postgres

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/ports"
)

var previewTable = pgdb.TableOf[preview.Preview]("previews", "schedule", "recovery_deadline").
	WithOptional("source_id").Added().
	Saved([]string{"database_id"}, []string{"lease_status", "lease_generation", "expires_at", "end_at", "failures", "ending_since"})

// previewRow is a preview with what is known of it by its database.
var previewRow = previewTable.Row("t") + ", d.schedule, CASE WHEN d." + gone + ` THEN
	(SELECT purge_after FROM tombstones s WHERE s.database_id = t.database_id) END AS recovery_deadline`

var (
	livePreview = pgdb.Written("SELECT " + previewRow + ` FROM previews t JOIN databases d ON d.id = t.database_id
		WHERE t.namespace_id = $1 AND t.ref = $2 AND t.lease_status <> 'deleted'`)
	usedRef      = pgdb.Written("SELECT coalesce(max(use), 0) FROM previews WHERE namespace_id = $1 AND ref = $2")
	reachPreview = pgdb.Written("SELECT " + previewRow + ` FROM previews t JOIN databases d ON d.id = t.database_id
		JOIN api_keys k ON k.namespace_id = t.namespace_id
		WHERE k.id = $1 AND k.kind = 'ci' AND k.revoked_at IS NULL AND t.database_id = $2`)
	lockPreview = pgdb.Written("SELECT " + previewRow + ` FROM previews t JOIN databases d ON d.id = t.database_id
		WHERE t.database_id = $1 FOR NO KEY UPDATE OF t`)
	// The first to end is the first in the index; of one that is only looked for, PostgreSQL may read all.
	leasesOver = pgdb.Written(`
		SELECT coalesce((SELECT min(expires_at) FROM previews WHERE lease_status = 'active') <= $1, false)`)
	lapseLeases = pgdb.Written(`
		UPDATE previews SET lease_status = 'expired', end_at = expires_at
		WHERE database_id IN (
			SELECT database_id FROM previews WHERE lease_status = 'active' AND expires_at <= $1
			ORDER BY expires_at, database_id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)`)
	duePreviews = pgdb.Written(`
		SELECT DISTINCT ON (d.server_id, d.account_id) ` + previewRow + `, d.server_id, d.account_id
		FROM previews t JOIN databases d ON d.id = t.database_id
			JOIN accounts a ON a.id = d.account_id AND a.suspended_at IS NULL
		WHERE t.lease_status = 'expired' AND t.end_at <= $1
			AND NOT EXISTS (SELECT FROM operations o WHERE o.database_id = t.database_id AND NOT o.logins AND o.` + open + `)
			AND NOT EXISTS (SELECT FROM previews b JOIN databases e ON e.id = b.database_id
				WHERE b.ending_since > $2 AND e.server_id = d.server_id)
		ORDER BY d.server_id, d.account_id, t.end_at, t.database_id`)
	endingPreviews = pgdb.Written(`SELECT t.database_id, d.server_id, d.account_id, t.ending_since
		FROM previews t JOIN databases d ON d.id = t.database_id WHERE t.ending_since IS NOT NULL`)
	livingPreviews = pgdb.Written("SELECT " + previewRow + `, d.name, d.status, coalesce(o.id::text, '') AS operation_id,
			coalesce(o.kind, '') AS kind
		FROM previews t JOIN databases d ON d.id = t.database_id
		LEFT JOIN operations o ON o.database_id = d.id AND NOT o.logins AND o.` + open + `
		WHERE d.account_id = $1 AND ($2 = '' OR t.namespace_id::text = $2) AND t.lease_status <> 'deleted'
			AND (t.expires_at, t.database_id) > ($3, $4)
		ORDER BY t.expires_at, t.database_id LIMIT $5`)
)

type previews struct{ pgdb.Rows[preview.Preview] }

func (p previews) OfRef(
	ctx context.Context, namespace id.NamespaceID, ref string,
) (live *preview.Preview, used int, err error) {
	found, err := p.All(ctx, livePreview, namespace, ref)
	if err != nil {
		return nil, 0, err
	}
	if len(found) > 0 {
		live = &found[0]
	}
	used, err = pgdb.One[int](ctx, p.Session, usedRef, namespace, ref)
	return live, used, err
}

func (p previews) Reach(ctx context.Context, key id.KeyID, db id.DatabaseID) (preview.Preview, error) {
	return p.One(ctx, reachPreview, key, db)
}

func (p previews) Lock(ctx context.Context, db id.DatabaseID) (preview.Preview, error) {
	return p.Locked(ctx, lockPreview, db)
}

func (p previews) Over(ctx context.Context, now time.Time) (bool, error) {
	return pgdb.One[bool](ctx, p.Session, leasesOver, now)
}

func (p previews) Lapse(ctx context.Context, now time.Time, limit int) (int, error) {
	n, err := p.Change(ctx, lapseLeases, now, limit)
	return int(n), err
}

func (p previews) Due(ctx context.Context, now, since time.Time) ([]ports.DuePreview, error) {
	return pgdb.All[ports.DuePreview](ctx, p.Session, duePreviews, now, since)
}

func (p previews) Ending(ctx context.Context) ([]ports.EndingPreview, error) {
	return pgdb.All[ports.EndingPreview](ctx, p.Session, endingPreviews)
}

func (p previews) Living(ctx context.Context, of ports.PreviewFilter, page ports.Page) ([]ports.LivingPreview, error) {
	return pgdb.PageOf[ports.LivingPreview](ctx, p.Session, livingPreviews, pgdb.Forward, page, of.AccountID, of.NamespaceID)
}

func errRefTaken() error { return fault.New(fault.PreviewConflict, "the ref has another preview") }
