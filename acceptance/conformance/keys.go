package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Keys is the suite of ports.Keys.
func Keys(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a key comes back as it was stored", keyComesBack},
		{"keys are listed newest first", keysAreListed},
		{"a replaced key keeps what it reaches", replacedKeyKeepsReach},
		{"a revoked key stays on the list", revokedKeyStays},
		{"namespaces bind CI keys", namespaceBindsKeys},
		{"a key refers to what exists", keyRefersToWhatExists},
	})
}

func getKey(w *world, key id.KeyID) (got account.Key) {
	w.Helper()
	w.view(func(ctx context.Context, tx ports.Tx) (err error) {
		got, err = tx.Keys().Get(ctx, key)
		return err
	})
	return got
}

func keyComesBack(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	w.equal("the key", getKey(w, k.ID), k)
	w.missing("an unknown key", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Keys().Get(ctx, "00000000")
		return err
	})
}

func keysAreListed(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	w.addKey(account.FullAccount, theirs)
	var want []account.Key
	for i := range 3 {
		_, c := account.NewKey(account.AccountKey, randomBase62())
		k := account.Key{
			ID: c.ID, Kind: account.AccountKey, AccountID: w.account.ID, UserID: w.user.ID, Label: numbered(i),
			Scope: account.FullAccount, Hash: c.Hash[:], CreatedAt: minutes(i),
		}
		w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().Add(ctx, k, nil) })
		want = append([]account.Key{k}, want...)
	}
	w.view(func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Keys().List(ctx, w.account.ID)
		w.equal("the account's keys", got, want)
		return err
	})
}

func replacedKeyKeepsReach(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	old := w.addKey(account.SelectedDatabases, w.account, r.ID)
	_, c := account.NewKey(account.AccountKey, randomBase62())
	fresh := old
	fresh.ID, fresh.Hash = c.ID, c.Hash[:]
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().Replace(ctx, old.ID, fresh) })
	w.equal("the replaced key", getKey(w, fresh.ID), fresh)
	w.missing("the old key", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Keys().Get(ctx, old.ID)
		return err
	})
	viewer := ports.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: fresh.ID, Scope: fresh.Scope}
	w.view(func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Databases().Visible(ctx, viewer, ports.Page{})
		if len(list) != 1 || list[0].ID != r.ID {
			w.Errorf("the replaced key sees %d databases, not the one of the old key (and not %s)", len(list), other.ID)
		}
		return err
	})
	w.refused("replacing a key that does not exist", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Keys().Replace(ctx, old.ID, fresh)
	})
}

func revokedKeyStays(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	at := minutes(1)
	k.RevokedAt = &at
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().Revoke(ctx, k) })
	w.view(func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Keys().List(ctx, w.account.ID)
		w.equal("the keys with the revoked one", got, []account.Key{k})
		return err
	})
	k.ID = "00000000"
	w.refused("revoking a key that does not exist", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Keys().Revoke(ctx, k)
	})
}

func namespaceBindsKeys(w *world) {
	n := account.Namespace{ID: newID[id.NamespaceID](), AccountID: w.account.ID, Name: "main", CreatedAt: epoch}
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().AddNamespace(ctx, n) })
	w.view(func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Keys().Namespace(ctx, n.ID)
		w.equal("the namespace", got, n)
		return err
	})
	_, c := account.NewKey(account.CIKey, randomBase62())
	k := account.Key{
		ID: c.ID, Kind: account.CIKey, AccountID: w.account.ID, UserID: w.user.ID, NamespaceID: n.ID, Label: "ci",
		Scope: account.SelectedDatabases, Hash: c.Hash[:], CreatedAt: epoch,
	}
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().Add(ctx, k, nil) })
	w.equal("the CI key", getKey(w, k.ID), k)

	again := n
	again.ID = newID[id.NamespaceID]()
	w.refused("a namespace whose name is in use", invalid("name"), func(ctx context.Context, tx ports.Tx) error {
		return tx.Keys().AddNamespace(ctx, again)
	})
	_, theirs := w.addAccount("bob@example.com")
	again.AccountID = theirs.ID
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Keys().AddNamespace(ctx, again) })
	w.missing("an unknown namespace", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Keys().Namespace(ctx, newID[id.NamespaceID]())
		return err
	})
}

func keyRefersToWhatExists(w *world) {
	_, c := account.NewKey(account.AccountKey, randomBase62())
	k := account.Key{
		ID: c.ID, Kind: account.AccountKey, AccountID: w.account.ID, UserID: w.user.ID, Label: "x",
		Scope: account.SelectedDatabases, Hash: c.Hash[:], CreatedAt: epoch.Add(time.Second),
	}
	w.refused("a key for a database that does not exist", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Keys().Add(ctx, k, []id.DatabaseID{newID[id.DatabaseID]()})
	})
	w.missing("the refused key", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Keys().Get(ctx, k.ID)
		return err
	})
}
