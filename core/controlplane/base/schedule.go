package base

import (
	"context"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// SetSchedule gives a locked database a schedule of backups, and the activity log an entry where it had another one.
func (p *Base) SetSchedule(
	ctx context.Context, tx ports.Tx, locked database.Record, s database.Schedule, by audit.Actor, what audit.Action,
) error {
	if locked.Schedule == s {
		return nil
	}
	details := audit.Details{"from": string(locked.Schedule), "to": string(s)}
	now := p.Clock.Now()
	locked.Schedule, locked.ScheduleSince, locked.NextBackupAt = s, &now, backup.Next(locked.ID, s, now)
	if err := tx.Databases().Save(ctx, locked); err != nil {
		return err
	}
	return p.Audit(ctx, tx, locked, by, what, details)
}
