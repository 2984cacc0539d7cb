package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/ports"
)

// figures implements ports.Figures. Each is one statement, whatever there is, and all but BackupAges, DatabaseBytes and Accounts
// look at little more than at what is counted.
type figures struct{ pgdb.Session }

// Figures reads each figure as it is then.
func (s *Store) Figures() ports.Figures { return figures{s.DB.View()} }

var (
	openOperations = pgdb.Written(`
		SELECT kind, status, count(*) AS count, min(created_at) AS oldest, min(greatest(not_before, lease_until)) AS due
		FROM operations WHERE ` + open + ` GROUP BY kind, status`)
	pendingChanges = pgdb.Written("SELECT count(*) AS count, min(created_at) AS oldest FROM role_changes WHERE status = 'pending'")
	previewLeases  = pgdb.Written(`
		SELECT (SELECT count(*) FROM previews WHERE lease_status = 'active' AND expires_at > $1 AND expires_at <= $2) AS ending,
			count(*) AS overdue, min(o.expires_at) AS oldest
		FROM (SELECT expires_at FROM previews WHERE lease_status = 'active' AND expires_at <= $1
			UNION ALL SELECT expires_at FROM previews WHERE lease_status = 'expired' AND end_at <= $1) o`)
	overdueBackups = pgdb.Written(`
		SELECT s.name AS server, count(d.id) FILTER (WHERE d.next_backup_at <= $2) AS count, min(d.next_backup_at) AS oldest
		FROM servers s LEFT JOIN databases d ON d.server_id = s.id AND d.next_backup_at <= $1 AND d.status IN ('active', 'stopped')
		GROUP BY s.name`)
	// The latest backup of a database is nearly always one that counts: the index gives it at once.
	backupAges = pgdb.Written(`
		SELECT s.name AS server, min(greatest(b.created_at, coalesce(d.schedule_since, d.created_at))) AS oldest
		FROM servers s JOIN databases d ON d.server_id = s.id JOIN accounts a ON a.id = d.account_id
		LEFT JOIN LATERAL (
			SELECT b.created_at FROM backups b
			WHERE b.database_id = d.id AND b.deleting_at IS NULL
				AND (b.verified_at IS NOT NULL OR a.verify_backups = false OR a.plan = ANY($1))
			ORDER BY b.created_at DESC, b.filename DESC LIMIT 1) b ON true
		WHERE d.schedule = 'daily' AND d.status NOT IN ('deleting', 'deleted', 'purging')
		GROUP BY s.name`)
	dueDeliveries = pgdb.Written(`
		SELECT count(*) AS count, min(greatest(d.not_before, d.lease_until)) AS oldest FROM webhook_deliveries d
		JOIN webhook_endpoints e ON e.id = d.webhook_id AND e.disabled_at IS NULL
		WHERE d.` + undelivered + ` AND greatest(d.not_before, d.lease_until) <= $1`)
	waitingEvents = pgdb.Written("SELECT count(*) AS count, min(created_at) AS oldest FROM outbox_events WHERE taken IS NULL")
	dueMails      = pgdb.Written(`
		SELECT count(*) AS count, min(greatest(not_before, lease_until)) AS oldest FROM mails
		WHERE ` + unsent + ` AND greatest(not_before, lease_until) <= $1`)
	databasesInError = pgdb.Written(`
		SELECT s.name AS server, count(d.id) AS count
		FROM servers s LEFT JOIN databases d ON d.server_id = s.id AND d.status = 'error' GROUP BY s.name ORDER BY s.name`)
	overQuota = pgdb.Written(`SELECT count(*) FILTER (WHERE storage_status = 'full') AS full,
		count(*) FILTER (WHERE storage_status = 'closed') AS closed FROM databases d WHERE storage_status <> 'ok' AND NOT d.` + gone)
	databaseBytes   = pgdb.Written("SELECT coalesce(sum(size_bytes), 0)::bigint FROM databases d WHERE NOT d." + gone)
	largestAccounts = pgdb.Written(`
		SELECT t.*, (SELECT count(*) FROM operations o WHERE o.account_id = t.account_id AND o.` + open + `) AS operations,
			(SELECT coalesce(sum(b.size_bytes), 0)::bigint FROM backups b JOIN databases d ON d.id = b.database_id
			WHERE d.account_id = t.account_id AND ` + countedBackup + `) AS backup_bytes
		FROM (SELECT d.account_id, count(*) AS databases, sum(d.size_bytes)::bigint AS bytes
			FROM databases d WHERE NOT d.` + gone + ` GROUP BY d.account_id ORDER BY bytes DESC, d.account_id LIMIT $1) t
		ORDER BY bytes DESC, account_id`)
	serverDrills = pgdb.Written(`
		SELECT s.name AS server, p.unproven_since, coalesce(l.outcome, '') AS outcome, coalesce(l.took_ms, 0) AS took_ms
		FROM drill_plans p JOIN servers s ON s.id = p.server_id
		LEFT JOIN LATERAL (
			SELECT d.outcome, d.took_ms FROM drills d WHERE d.server_id = p.server_id AND ` + toldDrill + `
			ORDER BY d.begun_at DESC, d.id DESC LIMIT 1) l ON true
		ORDER BY s.name`)
)

func (f figures) OpenOperations(ctx context.Context) ([]ports.OperationTally, error) {
	return pgdb.All[ports.OperationTally](ctx, f.Session, openOperations)
}

func (f figures) PendingChanges(ctx context.Context) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, f.Session, pendingChanges)
}

func (f figures) PreviewLeases(ctx context.Context, now, soon time.Time) (ports.LeaseTally, error) {
	return pgdb.One[ports.LeaseTally](ctx, f.Session, previewLeases, now, soon)
}

func (f figures) OverdueBackups(ctx context.Context, now, late time.Time) ([]ports.ServerTally, error) {
	return pgdb.All[ports.ServerTally](ctx, f.Session, overdueBackups, now, late)
}

func (f figures) BackupAges(ctx context.Context, unverifiedPlans []string) ([]ports.ServerTally, error) {
	return pgdb.All[ports.ServerTally](ctx, f.Session, backupAges, pq.Array(unverifiedPlans))
}

func (f figures) DueDeliveries(ctx context.Context, now time.Time) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, f.Session, dueDeliveries, now)
}

func (f figures) WaitingEvents(ctx context.Context) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, f.Session, waitingEvents)
}

func (f figures) DueMails(ctx context.Context, now time.Time) (ports.Tally, error) {
	return pgdb.One[ports.Tally](ctx, f.Session, dueMails, now)
}

func (f figures) DatabasesInError(ctx context.Context) ([]ports.ServerTally, error) {
	return pgdb.All[ports.ServerTally](ctx, f.Session, databasesInError)
}

func (f figures) OverQuota(ctx context.Context) (ports.QuotaTally, error) {
	return pgdb.One[ports.QuotaTally](ctx, f.Session, overQuota)
}

func (f figures) DatabaseBytes(ctx context.Context) (int64, error) {
	return pgdb.One[int64](ctx, f.Session, databaseBytes)
}

func (f figures) Accounts(ctx context.Context, most int) ([]ports.AccountFigures, error) {
	return pgdb.All[ports.AccountFigures](ctx, f.Session, largestAccounts, most)
}

func (f figures) Drills(ctx context.Context) ([]ports.ServerDrills, error) {
	return pgdb.All[ports.ServerDrills](ctx, f.Session, serverDrills)
}
