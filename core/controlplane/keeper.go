package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Keeper does the periodic work: scheduled backups, expired backups and passwords, changes that a crash or an outage left
// unfinished, and telling agents whose databases they have. Any number of keepers may run concurrently: all of their work is
// idempotent.
type Keeper struct {
	*base

	tasks    busy[string]      // that run apart as a whole
	changing busy[id.ServerID] // servers on which logins are being changed
	telling  busy[id.ServerID] // servers that are being told whose databases they have
	told     toldAccounts
}

// keepEvery is how often the keeper looks for work.
const keepEvery = 2 * time.Second

// keepBatch bounds one round of one task, so that no task starves the others.
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

// oneRound starts work that may have to wait for a server apart from the rest.
func (k *Keeper) oneRound(ctx context.Context, start func(work func())) error {
	others := errors.Join(k.scheduleBackups(ctx), k.forgetEvents(ctx), k.Admissions.Sweep(ctx, k.Clock.Now()))
	k.apart(ctx, start, "allowlists", k.pushAllowlists)
	k.apart(ctx, start, "backups", k.eraseBackups)
	return errors.Join(others, k.tellAccounts(ctx, start), k.keepRoles(ctx, start))
}

// apart starts a task that asks one server after the other: one that hangs holds up that task, and no other.
func (k *Keeper) apart(ctx context.Context, start func(work func()), name string, task func(context.Context) error) {
	k.tasks.work(name, start, func() {
		if err := task(ctx); err != nil && ctx.Err() == nil {
			k.journal(ctx, "keeper.unfinished", "", fmt.Errorf("%s: %w", name, err))
		}
	})
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
		_, one := k.queueBackup(ctx, r, audit.System, "", backup.Scheduled, k.reschedule)
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

func (k *Keeper) pushAllowlists(ctx context.Context) error {
	out := outage{}
	return round(func(limit int) (list []database.Record, err error) {
		return k.due(ctx, ports.DueAllowlist, limit)
	}, func(r database.Record) bool {
		if out.of(r.ServerID) {
			return false
		}
		err := out.note(r.ServerID, k.pushAllowlist(ctx, r.ID))
		if err != nil && !isSettled(err) {
			k.journal(ctx, "allowlist.pending", r.ID, err)
		}
		return err == nil
	})
}

// eraseBackups removes the files of backups that have expired or were deleted.
func (k *Keeper) eraseBackups(ctx context.Context) error {
	out, stuck := outage{}, map[id.DatabaseID]bool{}
	return round(func(limit int) (list []backup.Backup, err error) {
		err = k.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
			list, err = tx.Backups().Doomed(ctx, k.Clock.Now(), limit)
			return err
		})
		return list, err
	}, func(b backup.Backup) bool {
		if stuck[b.DatabaseID] {
			return false
		}
		err := k.eraseOne(ctx, b, out)
		if err != nil && !isSettled(err) {
			stuck[b.DatabaseID] = true
			if !errors.Is(err, errNoAnswer) {
				k.journal(ctx, "backup.not_erased", b.DatabaseID, err)
			}
		}
		return err == nil
	})
}

func (k *Keeper) eraseOne(ctx context.Context, b backup.Backup, out outage) error {
	what := audit.BackupDeleted
	if b.DeletingAt == nil || b.Expired(*b.DeletingAt) {
		what = audit.BackupExpired
	}
	var record database.Record
	err := k.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if record, err = tx.Databases().Lock(ctx, b.DatabaseID); err != nil {
			return err
		}
		_, err = tx.Backups().MarkDeleting(ctx, b.DatabaseID, b.Filename, k.Clock.Now())
		return err
	})
	switch {
	case err != nil:
		return err
	case out.of(record.ServerID):
		return errNoAnswer
	}
	return out.note(record.ServerID, k.erase(ctx, record, b, audit.System, what))
}
