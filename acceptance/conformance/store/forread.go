package store

import (
	"errors"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// keyIsFoundForRead compares what is found for a read with what Find and Get find.
func keyIsFoundForRead(w *world) {
	bytes := int64(1 << 30)
	w.account.DatabaseBytes, w.account.Suspension = &bytes, unpaid()
	w.update(writing(ports.Tx.Accounts, ports.Accounts.Save, w.account))
	k := w.addKey(account.FullAccount, w.account)
	own := w.addDatabase("own")
	_, other := w.addAccount("other@example.com")
	foreign := w.addDatabase("foreign", func(r *database.Record) { r.AccountID = other.ID })
	for name, c := range map[string]struct {
		named database.Record
		found bool
	}{
		"its account's": {own, true}, "another account's": {foreign, false}, "none": {w.record("none"), false},
	} {
		got, err := w.Admissions.FindForRead(w.Context(), k.ID, c.named.ID)
		if err != nil {
			w.Fatal(err)
		}
		want, summary := k, database.Summary{}
		want.Label, want.CreatedAt, want.LastUsedAt = "", time.Time{}, nil
		if c.found {
			summary = read(w, ports.Tx.Databases, ports.Databases.Get, c.named.ID).Summary()
		}
		w.equal("the key", got.Key, want)
		w.equal("the plan", got.Account.Plan, w.account.Plan)
		w.equal("the suspension", got.Account.Suspension, w.account.Suspension)
		w.equal(name, got.Database, summary)
	}
	if _, err := w.Admissions.FindForRead(w.Context(), "00000000", own.ID); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("an unknown key: %v", err)
	}
}
