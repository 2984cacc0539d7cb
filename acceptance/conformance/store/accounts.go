package store

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/pgversion"
	"github.com/pgherd/pgherd/ports"
)

// Accounts is the suite of ports.Accounts.
func Accounts(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an account comes back as it was stored", accountComesBack},
		{"mail addresses and owners are unique, and there", accountsAreUnique},
		{"several users are found at once", usersAreFoundAtOnce},
		{"counting and adding are one step", quotaHolds},
		{"a user is found by ID and by address", usersAreFound},
	})
}

func accountComesBack(w *world) {
	databases, days, back, verify, validity := 7, 3, 0, false, 90*time.Minute+time.Nanosecond
	bytes, files := int64(1), int64(1<<50)
	changed := w.account
	changed.Plan = account.Pro
	changed.Overrides = account.Overrides{
		MaxDatabases: &databases, BackupDays: &days, PITRDays: &back, PreviewCopies: new(true), VerifyBackups: &verify,
		PostgresVersion:    new(pgversion.Newest),
		CredentialValidity: &validity, DatabaseBytes: &bytes, BackupBytes: &files,
	}
	changed.Suspension = unpaid()
	w.equal("as added", read(w, ports.Tx.Accounts, ports.Accounts.Get, w.account.ID), w.account)
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, changed))
	w.equal("as saved", readLocked(w, ports.Tx.Accounts, ports.Accounts.LockForQuota, w.account.ID), changed)
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, w.account))
	w.equal("without overrides again", read(w, ports.Tx.Accounts, ports.Accounts.Get, w.account.ID), w.account)
	nobody := account.Account{ID: newID[id.AccountID](), OwnerID: w.user.ID, Plan: account.Free, CreatedAt: epoch}
	w.missing("an unknown account", reading(ports.Tx.Accounts, ports.Accounts.Get, nobody.ID))
	w.unknown("saving an unknown account", writing(ports.Tx.Accounts, ports.Accounts.Save, nobody))
	w.unknown("locking an unknown account", reading(ports.Tx.Accounts, ports.Accounts.LockForQuota, nobody.ID))
}

func accountsAreUnique(w *world) {
	w.refused("a mail address that is in use", invalid("email"), writing(ports.Tx.Accounts, ports.Accounts.AddUser, account.User{
		ID: newID[id.UserID](), Email: w.user.Email, Name: "Other", CreatedAt: epoch,
	}))
	another := account.Account{ID: newID[id.AccountID](), OwnerID: w.user.ID, Plan: account.Free, CreatedAt: epoch}
	w.refused("a second account of one user", invalid("owner"), writing(ports.Tx.Accounts, ports.Accounts.Add, another))
	another.OwnerID = newID[id.UserID]()
	w.unknown("an account of nobody", writing(ports.Tx.Accounts, ports.Accounts.Add, another))
}

func usersAreFoundAtOnce(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	w.addAccount("eve@example.com")
	nobody := newID[id.UserID]()
	for _, c := range []struct {
		ask  []id.UserID
		want map[id.UserID]account.User
	}{
		{nil, map[id.UserID]account.User{}},
		{[]id.UserID{nobody}, map[id.UserID]account.User{}},
		{[]id.UserID{w.user.ID, nobody, bob.ID}, map[id.UserID]account.User{w.user.ID: w.user, bob.ID: bob}},
	} {
		got := map[id.UserID]account.User{}
		for _, u := range read(w, ports.Tx.Accounts, ports.Accounts.Users, c.ask) {
			got[u.ID] = u
		}
		w.equal("the users", got, c.want)
	}
}

func quotaHolds(w *world) {
	const room, tries = 3, 12
	w.race(tries, nil, func(i int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Accounts().LockForQuota(ctx, w.account.ID); err != nil {
				return err
			}
			n, err := tx.Databases().Count(ctx, w.account.ID)
			if err != nil || n >= room {
				return err
			}
			return tx.Databases().Add(ctx, w.record(numbered(i)))
		}
	})
	w.equal("databases of an account that has room for three",
		read(w, ports.Tx.Databases, ports.Databases.Count, w.account.ID), room)
}

func usersAreFound(w *world) {
	u := account.User{
		ID: newID[id.UserID](), Email: "bob@example.com", Name: "Bob", CreatedAt: epoch, PasswordHash: "$argon2id$v=19$...",
	}
	w.update(writing(ports.Tx.Accounts, ports.Accounts.AddUser, u))
	w.equal("the user", read(w, ports.Tx.Accounts, ports.Accounts.User, u.ID), u)
	w.equal("the user of an address", read(w, ports.Tx.Accounts, ports.Accounts.UserByEmail, u.Email), u)
	w.equal("a user without a password", read(w, ports.Tx.Accounts, ports.Accounts.UserByEmail, w.user.Email), w.user)
	w.missing("nobody", reading(ports.Tx.Accounts, ports.Accounts.User, newID[id.UserID]()))
	for _, email := range []string{"", "bob", "%", "bob@example.co_", "Bob@example.com", "bob@example.com ", "boб@example.com"} {
		w.missing(email, reading(ports.Tx.Accounts, ports.Accounts.UserByEmail, email))
	}
}
