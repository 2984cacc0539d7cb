package storage

import (
	"context"
	"errors"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/ports"
)

// Quotas is what the people who run the service do about quotas of bytes. It does not authenticate.
type Quotas struct{ base *base.Base }

// NewQuotas makes the use cases.
func NewQuotas(p *base.Base) *Quotas { return &Quotas{p} }

// OpenDatabase opens a database again that was closed for its size, so that its customers can delete data. It stays full, and is
// closed again only once it has grown by another 20 % of its quota. VALIDATION_ERROR on "reason". DATABASE_NOT_FOUND.
// DATABASE_STATE_CONFLICT: it is not closed.
func (q *Quotas) OpenDatabase(ctx context.Context, db id.DatabaseID, by, reason string) (r database.Record, err error) {
	if err := operation.CheckReason(reason); err != nil {
		return r, err
	}
	err = q.base.UpdateReached(ctx, db, func(ctx context.Context, tx ports.Tx, locked database.Record) error {
		locked, err := withQuota(ctx, tx, locked)
		if err != nil {
			return err
		}
		to, err := locked.Storage().Opened(locked.SizeBytes, locked.StorageQuota())
		if err != nil {
			return err
		}
		r = locked
		r.SetStorage(to)
		return move(ctx, q.base, tx, locked, to, audit.Operator, audit.Details{"operator": by, "reason": reason})
	})
	return r, err
}

// LockOwned locks the databases of an account, which a transaction does before it locks the account. A database that is added
// later has no size yet; when it is measured, the new quota is known.
func (q *Quotas) LockOwned(ctx context.Context, tx ports.Tx, of id.AccountID) (owned []id.DatabaseID, err error) {
	list, err := tx.Storage().OfAccount(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, db := range list {
		_, err := tx.Databases().Lock(ctx, db)
		if errors.Is(err, ports.ErrNoRow) { // it was removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		owned = append(owned, db)
	}
	return owned, nil
}

// QuotaChanged decides again over the locked databases of an account, which is saved by now, with the sizes that are stored. It
// belongs to the transaction that changes the account.
func (q *Quotas) QuotaChanged(ctx context.Context, tx ports.Tx, owned []id.DatabaseID, before, now account.Account) error {
	from, to := before.Quotas().DatabaseBytes, now.Quotas().DatabaseBytes
	if from == to {
		return nil
	}
	for _, db := range owned {
		locked, err := tx.Databases().Lock(ctx, db) // again: it comes with the new quota
		if err == nil {
			err = move(ctx, q.base, tx, locked, locked.Storage().QuotaChanged(locked.SizeBytes, from, to), audit.Operator, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withQuota reads the quota of a locked record again: it may have changed while the lock was waited for.
func withQuota(ctx context.Context, tx ports.Tx, locked database.Record) (database.Record, error) {
	of, err := tx.Accounts().Get(ctx, locked.AccountID)
	locked.Plan, locked.DatabaseBytes = of.Plan, of.DatabaseBytes
	return locked, err
}

var actions = map[database.StorageStatus]audit.Action{
	database.StorageOK: audit.StorageWithin, database.StorageFull: audit.StorageFull, database.StorageClosed: audit.StorageClosed,
}

// move stores the storage state of a database. A change of its status is one of its settings, and is logged.
func move(
	ctx context.Context, p *base.Base, tx ports.Tx, locked database.Record, to database.Storage, by audit.Actor,
	also audit.Details,
) error {
	if to.Status == locked.StorageStatus {
		locked.SetStorage(to)
		return tx.Databases().Save(ctx, locked)
	}
	details := audit.Details{
		"from": string(locked.StorageStatus), "sizeBytes": strconv.FormatInt(locked.SizeBytes, 10),
		"quotaBytes": strconv.FormatInt(locked.StorageQuota(), 10),
	}
	for name, value := range also {
		details[name] = value
	}
	locked.SetStorage(to)
	if err := settings.Save(ctx, tx, locked); err != nil {
		return err
	}
	return p.Audit(ctx, tx, locked, by, actions[to.Status], details)
}
