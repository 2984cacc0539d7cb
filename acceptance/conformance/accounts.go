package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Accounts is the suite of ports.Accounts.
func Accounts(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an account comes back as it was stored", accountComesBack},
		{"mail addresses and owners are unique", accountsAreUnique},
		{"an account needs its user", accountNeedsUser},
		{"counting and adding are one step", quotaHolds},
		{"a membership is set once and changed", membershipChanges},
	})
}

func accountComesBack(w *world) {
	databases, days, verify, validity := 7, 3, false, 90*time.Minute+time.Nanosecond
	bytes, files := int64(1), int64(1<<50)
	changed := w.account
	changed.Plan = account.Pro
	changed.Overrides = account.Overrides{
		MaxDatabases: &databases, BackupDays: &days, VerifyBackups: &verify, CredentialValidity: &validity,
		DatabaseBytes: &bytes, BackupBytes: &files,
	}
	w.equal("as added", read(w, ports.Tx.Accounts, ports.Accounts.Get, w.account.ID), w.account)
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, changed))
	w.equal("as saved", readLocked(w, ports.Tx.Accounts, ports.Accounts.LockForQuota, w.account.ID), changed)
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, w.account))
	w.equal("without overrides again", read(w, ports.Tx.Accounts, ports.Accounts.Get, w.account.ID), w.account)
	nobody := account.Account{ID: newID[id.AccountID](), OwnerID: w.user.ID, Plan: account.Free, CreatedAt: epoch}
	w.missing("an unknown account", reading(ports.Tx.Accounts, ports.Accounts.Get, nobody.ID))
	w.refused("saving an unknown account", ports.ErrNoRow, writing(ports.Tx.Accounts, ports.Accounts.Save, nobody))
	w.refused("locking an unknown account", ports.ErrNoRow, reading(ports.Tx.Accounts, ports.Accounts.LockForQuota, nobody.ID))
}

func accountsAreUnique(w *world) {
	w.refused("a mail address that is in use", invalid("email"), func(ctx context.Context, tx ports.Tx) error {
		return tx.Accounts().AddUser(ctx, account.User{
			ID: newID[id.UserID](), Email: w.user.Email, Name: "Other", CreatedAt: epoch,
		})
	})
	w.refused("a second account of one user", invalid("owner"), func(ctx context.Context, tx ports.Tx) error {
		return tx.Accounts().Add(ctx, account.Account{
			ID: newID[id.AccountID](), OwnerID: w.user.ID, Plan: account.Free, CreatedAt: epoch,
		})
	})
}

func accountNeedsUser(w *world) {
	w.refused("an account of nobody", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Accounts().Add(ctx, account.Account{
			ID: newID[id.AccountID](), OwnerID: newID[id.UserID](), Plan: account.Free, CreatedAt: epoch,
		})
	})
}

func quotaHolds(w *world) {
	const room, tries = 3, 12
	together(w.T, tries, func(i int) {
		_ = w.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Accounts().LockForQuota(ctx, w.account.ID); err != nil {
				return err
			}
			n, err := tx.Databases().Count(ctx, w.account.ID)
			if err != nil || n >= room {
				return err
			}
			return tx.Databases().Add(ctx, w.record(numbered(i)))
		})
	})
	w.view(func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Databases().Count(ctx, w.account.ID)
		w.equal("databases of an account that has room for three", n, room)
		return err
	})
}

func membershipChanges(w *world) {
	r := w.addDatabase("shop")
	other, theirs := w.addAccount("bob@example.com")
	key := w.addKey(account.SelectedDatabases, theirs, r.ID)
	viewer := ports.Viewer{AccountID: theirs.ID, UserID: other.ID, KeyID: key.ID, Scope: account.SelectedDatabases}
	for _, role := range []account.Standing{account.Viewer, account.Admin, account.Developer} {
		m := ports.Membership{ID: newID[id.MembershipID](), DatabaseID: r.ID, UserID: other.ID, Role: role}
		w.update(writing(ports.Tx.Accounts, ports.Accounts.SetMember, m))
		w.view(func(ctx context.Context, tx ports.Tx) error {
			_, standing, err := tx.Databases().Reach(ctx, viewer, r.ID)
			w.equal("the member's standing", standing, role)
			return err
		})
	}
	nowhere := ports.Membership{ID: newID[id.MembershipID](), UserID: other.ID, Role: account.Admin}
	nobody := nowhere
	nowhere.DatabaseID = newID[id.DatabaseID]()
	nobody.DatabaseID, nobody.UserID = r.ID, newID[id.UserID]()
	for what, m := range map[string]ports.Membership{"a member of no database": nowhere, "a member who is nobody": nobody} {
		w.refused(what, ports.ErrNoRow, writing(ports.Tx.Accounts, ports.Accounts.SetMember, m))
	}
}
