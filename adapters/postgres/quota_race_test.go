package postgres_test

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// meanwhile makes a change, and commits it once rival waits for it.
func (w *inviting) meanwhile(rival func() error, change func(context.Context, ports.Tx) error) {
	w.Helper()
	ended := make(chan error, 1)
	check.NoError(w, w.store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error {
		if err := change(ctx, tx); err != nil {
			return err
		}
		go func() { ended <- rival() }()
		awaitLockWait(w, w.direct)
		return nil
	}))
	check.NoError(w, <-ended)
}

// TestAQuotaThatChangesMeanwhile has an operator open a database who waits for a transaction that raises the quota.
func TestAQuotaThatChangesMeanwhile(t *testing.T) {
	w := newInviting(t, 1)
	db, raised := w.databases[0].Record(), int64(1)<<50
	db.SizeBytes, db.StorageStatus = 1<<49, database.StorageClosed
	check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		return tx.Databases().Save(ctx, db)
	}))
	var opened database.Record
	w.meanwhile(func() (err error) {
		opened, err = w.processes[1].Operator.OpenDatabase(t.Context(), db.ID, "ada", "they delete")
		return err
	}, func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Databases().Lock(ctx, db.ID); err != nil {
			return err
		}
		of, err := tx.Accounts().Get(ctx, db.AccountID)
		if err != nil {
			return err
		}
		of.DatabaseBytes = &raised
		return tx.Accounts().Save(ctx, of)
	})
	if opened.StorageQuota() != raised || opened.StorageStatus != database.StorageOK {
		t.Errorf("with a quota of %d it is %s", opened.StorageQuota(), opened.StorageStatus)
	}
}

// TestAnAccountThatChangesMeanwhile changes an account that somebody wants to lock who has locked one of its databases, and one
// of whose databases is being removed.
func TestAnAccountThatChangesMeanwhile(t *testing.T) {
	w := newInviting(t, 2)
	db := w.databases[0].Record()
	quota, invited, changed, ended := int64(6), 0, 0, make(chan error, 1)
	change := func() error {
		_, err := w.processes[1].Operator.ChangeAccount(t.Context(), db.AccountID, func(a *account.Account) {
			changed++
			a.DatabaseBytes = &quota
		})
		return err
	}
	check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Databases().Lock(ctx, db.ID); err != nil {
			return err
		}
		if invited++; invited == 1 {
			go func() { ended <- change() }()
			awaitLockWait(w, w.direct)
		}
		_, err := tx.Accounts().LockForQuota(ctx, db.AccountID)
		return err
	}))
	check.NoError(t, <-ended)
	if invited != 1 || changed != 1 {
		t.Errorf("there was a deadlock: %d and %d runs", invited, changed)
	}
	quota = 7
	w.meanwhile(change, func(ctx context.Context, tx ports.Tx) error { return tx.Databases().Remove(ctx, db.ID) })
	check.NoError(t, w.store.View(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		of, err := tx.Accounts().Get(ctx, db.AccountID)
		if err == nil && (of.DatabaseBytes == nil || *of.DatabaseBytes != quota) {
			t.Errorf("the quota is %v", of.DatabaseBytes)
		}
		return err
	}))
}
