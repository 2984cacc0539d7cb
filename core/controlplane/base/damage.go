package base

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/event"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// FoundDamaged stores that a backup of a database is not what was stored, and tells its owner; false: that was known already.
func (p *Base) FoundDamaged(
	ctx context.Context, tx ports.Tx, of database.Record, found backup.Backup, now time.Time, why string,
) (news bool, err error) {
	after, news := found.FoundDamaged(now)
	if err := tx.Backups().Save(ctx, after); err != nil || !news {
		return false, err
	}
	err = p.Audit(ctx, tx, of, audit.System, audit.BackupDamaged, audit.Details{
		"filename": string(found.Filename), "operationId": string(found.OperationID), "found": why,
	})
	if err != nil || of.Status.Gone() {
		return true, err
	}
	own := NewID[id.OperationID](p.Entropy)
	payload := event.OfDamage(own, after, of.Name, now)
	return true, tx.Outbox().Add(ctx, ports.OutboxEvent{
		ID: NewID[id.EventID](p.Entropy), AccountID: of.AccountID, DatabaseID: of.ID, OperationID: own,
		Name: payload.Event, Payload: operation.Encode(payload), CreatedAt: now,
	})
}
