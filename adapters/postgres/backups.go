package postgres

import (
	"context"
	"time"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

var backupTable = pgdb.TableOf[backup.Backup]("backups", "last").WithOptional("kept_by").
	Added("ON CONFLICT (operation_id) DO NOTHING")

// lastBackup is backup.Backup.Last of a backup t; the conformance suite compares it with the rule.
const lastBackup = `NOT EXISTS (
	SELECT FROM backups o WHERE o.database_id = t.database_id AND o.deleting_at IS NULL AND
		(o.verified_at IS NOT NULL, o.created_at, o.filename) > (t.verified_at IS NOT NULL, t.created_at, t.filename))`

// readBackups reads backups as they are among those of their databases.
func readBackups() sq.SelectBuilder { return backupTable.Read().Column(lastBackup + " AS last") }

var (
	getBackup   = pgdb.Define(readBackups().Where("t.database_id = ? AND t.filename = ? AND t.deleting_at IS NULL"))
	listBackups = pgdb.Define(readBackups().Where("t.database_id = ? AND t.deleting_at IS NULL").
			Where("(t.created_at, t.filename) < (?, ?)").
			OrderBy("t.created_at DESC", "t.filename DESC").Suffix("LIMIT ?"))
	backupNames = pgdb.Written(`
		SELECT filename FROM backups WHERE database_id = $1
		UNION SELECT input->>'filename' FROM operations
		WHERE database_id = $1 AND status IN ('queued', 'running') AND input->>'filename' IS NOT NULL
		ORDER BY 1`)
	markBackup = pgdb.Define(pgdb.Dollar.Update("backups t").Set("deleting_at", sq.Expr("coalesce(t.deleting_at, ?)", nil)).
			Where("t.database_id = ? AND t.filename = ?").Suffix("RETURNING " + backupTable.Row("t")))
	saveBackup = pgdb.Define(backupTable.Update([]string{"expires_at", "verified_at", "last_read_at", "damaged_at", "kept_by"},
		"operation_id = ? AND deleting_at IS NULL"))
	removeBackup  = pgdb.Written("DELETE FROM backups WHERE database_id = $1 AND filename = $2")
	doomedBackups = pgdb.Define(readBackups().Columns("coalesce(t.kept_by, d.server_id) AS server_id", "d.account_id").
			Join("databases d ON d.id = t.database_id").
			Where("(t.deleting_at IS NOT NULL OR t.expires_at <= ? AND NOT t.held AND NOT d."+gone+" AND NOT "+lastBackup+")").
			OrderBy("least(t.deleting_at, t.expires_at)", "t.database_id", "t.filename").Suffix("LIMIT ?"))
)

type backups struct{ pgdb.Rows[backup.Backup] }

func (b backups) Get(ctx context.Context, db id.DatabaseID, filename backup.Filename) (backup.Backup, error) {
	return b.One(ctx, getBackup, db, filename)
}

// List continues from a position whose ID is a file name.
func (b backups) List(ctx context.Context, db id.DatabaseID, p ports.Page) ([]backup.Backup, error) {
	at, filename := any(pgdb.End), "~" // sorts behind every file name
	if p.After != nil {
		if _, err := backup.ParseFilename(p.After.ID); err != nil || p.After.Key != "" {
			return nil, ports.ErrCursor()
		}
		at, filename = p.After.At, p.After.ID
	}
	return b.All(ctx, listBackups, db, at, filename, pgdb.Limit(p))
}

func (b backups) Names(ctx context.Context, db id.DatabaseID) ([]backup.Filename, error) {
	return pgdb.All[backup.Filename](ctx, b.Session, backupNames, db)
}

// MarkDeleting keeps the time of the first mark.
func (b backups) MarkDeleting(
	ctx context.Context, db id.DatabaseID, filename backup.Filename, now time.Time,
) (backup.Backup, error) {
	return b.Locked(ctx, markBackup, now, db, filename)
}

func (b backups) Save(ctx context.Context, row backup.Backup) error {
	return b.MustChange(ctx, ports.ErrNoRow, saveBackup,
		row.ExpiresAt, row.VerifiedAt, row.LastReadAt, row.DamagedAt, row.KeptBy, row.OperationID)
}

func (b backups) Remove(ctx context.Context, db id.DatabaseID, filename backup.Filename) error {
	return b.Write(ctx, removeBackup, db, filename)
}

func (b backups) Doomed(ctx context.Context, now time.Time, limit int) ([]ports.DoomedBackup, error) {
	return pgdb.All[ports.DoomedBackup](ctx, b.Session, doomedBackups, now, limit)
}
