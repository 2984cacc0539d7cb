package controlplane

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Keeper does the periodic work: scheduled backups, expired backups and passwords, changes that a crash or an outage left
// unfinished, and telling agents whose databases they have. Any number of keepers may run concurrently: all of their work is
// idempotent.
type Keeper struct {
	*base

	// Servers on which such work is under way: no piece of it waits for another server, nor for work of another kind.
	changing busy // logins
	telling  busy // whose the databases are
	pushing  busy // allowlists
	erasing  busy // backups
	told     toldAccounts
}

// keepEvery is how often the keeper looks for work.
const keepEvery = 2 * time.Second

// keepBatch bounds one round of what needs no server, so that no task starves the others.
const keepBatch = 100

// Run works until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	var apart sync.WaitGroup
	defer apart.Wait()
	for {
		if err := k.oneRound(ctx, apart.Go); err != nil && ctx.Err() == nil {
			k.journal(ctx, "keeper.unfinished", "", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Once does one round of every task. A task that fails does not prevent the others.
func (k *Keeper) Once(ctx context.Context) error {
	return k.oneRound(ctx, func(work func()) { work() })
}

// oneRound starts what may have to wait for a server with start, for each server on its own.
func (k *Keeper) oneRound(ctx context.Context, start func(work func())) error {
	return errors.Join(
		k.scheduleBackups(ctx), k.forgetEvents(ctx), k.Admissions.Sweep(ctx, k.Clock.Now()),
		k.pushAllowlists(ctx, start), k.eraseBackups(ctx, start), k.tellAccounts(ctx, start), k.keepRoles(ctx, start),
	)
}

// forgetEvents deletes deliveries that became final webhook.Retention ago, and their events.
func (k *Keeper) forgetEvents(ctx context.Context) error {
	return k.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Forget(ctx, k.Clock.Now().Add(-webhook.Retention), keepBatch)
	})
}

func (k *Keeper) due(ctx context.Context, what ports.DueWork, limit int) (list []database.Record, err error) {
	err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Databases().Due(ctx, what, k.Clock.Now(), limit)
		return err
	})
	return list, err
}

// scheduleBackups queues the daily backups that are due. Several missed days are made up for by one backup.
func (k *Keeper) scheduleBackups(ctx context.Context) error {
	list, err := k.due(ctx, ports.DueBackup, keepBatch)
	for _, r := range list {
		_, one := k.queueBackup(ctx, r, work.Origin{Actor: audit.System}, backup.Scheduled, k.reschedule)
		if one != nil && !isSettled(one) {
			err = errors.Join(err, one)
		}
	}
	return err
}

// reschedule moves the database's next backup to the next slot. Another keeper may have done so in the meantime.
func (k *Keeper) reschedule(ctx context.Context, tx ports.Tx, locked database.Record) error {
	now := k.Clock.Now()
	if locked.NextBackupAt == nil || now.Before(*locked.NextBackupAt) {
		return errSettled
	}
	next := backup.NextDaily(locked.ID, now)
	locked.NextBackupAt = &next
	return tx.Databases().Save(ctx, locked)
}

// errSettled means that another process has done the work.
var errSettled = errors.New("already done")

// isSettled reports whether an error means that nothing is left to do: another process did it, or the database's state forbids
// it now.
func isSettled(err error) bool {
	return errors.Is(err, errSettled) || errors.Is(err, ports.ErrNoRow) || fault.Has(err, fault.DatabaseStateConflict)
}
