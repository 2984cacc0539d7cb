package postgres

import (
	"context"
	"time"

	"github.com/lib/pq"
)

// Figures are for the metrics of a host: no use case depends on them. Each is one statement, whatever there is, and all but
// BackupAges look at little more than at what is counted.
type Figures struct{ session }

// Figures reads each figure as it is then.
func (s *Store) Figures() Figures { return Figures{session{store: s}} }

var (
	openOperations = written(`
		SELECT kind, status, count(*) AS count, min(created_at) AS oldest, min(greatest(not_before, lease_until)) AS due
		FROM operations WHERE ` + open + ` GROUP BY kind, status`)
	pendingChanges = written("SELECT count(*) AS count, min(created_at) AS oldest FROM role_changes WHERE status = 'pending'")
	previewLeases  = written(`
		SELECT (SELECT count(*) FROM previews WHERE lease_status = 'active' AND expires_at > $1 AND expires_at <= $2) AS ending,
			count(*) AS overdue, min(o.expires_at) AS oldest
		FROM (SELECT expires_at FROM previews WHERE lease_status = 'active' AND expires_at <= $1
			UNION ALL SELECT expires_at FROM previews WHERE lease_status = 'expired' AND end_at <= $1) o`)
	overdueBackups = written(`
		SELECT s.name AS server, count(d.id) FILTER (WHERE d.next_backup_at <= $2) AS count, min(d.next_backup_at) AS oldest
		FROM servers s LEFT JOIN databases d ON d.server_id = s.id AND d.next_backup_at <= $1 AND d.status IN ('active', 'stopped')
		GROUP BY s.name`)
	// The latest backup of a database is nearly always one that counts: the index gives it at once.
	backupAges = written(`
		SELECT s.name AS server, min(greatest(b.created_at, coalesce(d.schedule_since, d.created_at))) AS oldest
		FROM servers s JOIN databases d ON d.server_id = s.id JOIN accounts a ON a.id = d.account_id
		LEFT JOIN LATERAL (
			SELECT b.created_at FROM backups b
			WHERE b.database_id = d.id AND b.deleting_at IS NULL
				AND (b.verified_at IS NOT NULL OR a.verify_backups = false OR a.plan = ANY($1))
			ORDER BY b.created_at DESC, b.filename DESC LIMIT 1) b ON true
		WHERE d.schedule = 'daily' AND d.status NOT IN ('deleting', 'deleted', 'purging')
		GROUP BY s.name`)
	dueDeliveries = written(`
		SELECT count(*) AS count, min(greatest(d.not_before, d.lease_until)) AS oldest FROM webhook_deliveries d
		JOIN webhook_endpoints e ON e.id = d.webhook_id AND e.disabled_at IS NULL
		WHERE d.` + undelivered + ` AND greatest(d.not_before, d.lease_until) <= $1`)
	waitingEvents = written("SELECT count(*) AS count, min(created_at) AS oldest FROM outbox_events WHERE taken IS NULL")
	dueMails      = written(`
		SELECT count(*) AS count, min(greatest(not_before, lease_until)) AS oldest FROM mails
		WHERE ` + unsent + ` AND greatest(not_before, lease_until) <= $1`)
)

// Some is how many there are of something, and since when the oldest is; nil where there is none.
type Some struct {
	Count  int64      `db:"count"`
	Oldest *time.Time `db:"oldest"`
}

// OpenOperations are those of a kind and status. Due is when the first of them can be, or could have been, claimed.
type OpenOperations struct {
	Kind   string     `db:"kind"`
	Status string     `db:"status"`
	Due    *time.Time `db:"due"`
	Some
}

// OfServer is something of the databases of a server, by its name.
type OfServer struct {
	Server string `db:"server"`
	Some
}

// Leases of previews: how many end soon, and how many have ended and are not deleted; the oldest by its end.
type Leases struct {
	Ending  int64      `db:"ending"`
	Overdue int64      `db:"overdue"`
	Oldest  *time.Time `db:"oldest"`
}

// OpenOperations lists what is queued or running.
func (f Figures) OpenOperations(ctx context.Context) ([]OpenOperations, error) {
	return all[OpenOperations](ctx, f.session, openOperations)
}

// PendingChanges counts the unfinished changes of logins.
func (f Figures) PendingChanges(ctx context.Context) (Some, error) {
	return one[Some](ctx, f.session, pendingChanges)
}

// PreviewLeases counts the leases that end by soon, and those that are over.
func (f Figures) PreviewLeases(ctx context.Context, now, soon time.Time) (Leases, error) {
	return one[Leases](ctx, f.session, previewLeases, now, soon)
}

// OverdueBackups counts, for every server, the databases whose daily backup was due before late and is not queued; the oldest may
// be due since then.
func (f Figures) OverdueBackups(ctx context.Context, now, late time.Time) ([]OfServer, error) {
	return all[OfServer](ctx, f.session, overdueBackups, now, late)
}

// BackupAges is when, for each server, the last verified backup was made of the database with daily backups that is worst off. In
// accounts whose backups are not verified, any counts. A database counts from when its daily backups were switched on, at its
// creation or later, where it has had none since; also one that cannot be backed up, but none that is deleted or being deleted.
func (f Figures) BackupAges(ctx context.Context, unverifiedPlans []string) ([]OfServer, error) {
	return all[OfServer](ctx, f.session, backupAges, pq.Array(unverifiedPlans))
}

// DueDeliveries counts webhook deliveries whose next attempt could have begun; the oldest by when that was.
func (f Figures) DueDeliveries(ctx context.Context, now time.Time) (Some, error) {
	return one[Some](ctx, f.session, dueDeliveries, now)
}

// WaitingEvents counts events of which no deliveries were made yet.
func (f Figures) WaitingEvents(ctx context.Context) (Some, error) {
	return one[Some](ctx, f.session, waitingEvents)
}

// DueMails counts mails whose next attempt could have begun.
func (f Figures) DueMails(ctx context.Context, now time.Time) (Some, error) {
	return one[Some](ctx, f.session, dueMails, now)
}
