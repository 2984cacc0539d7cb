package store

import (
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
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
		{"a key has an end and networks, and may get others", keyIsBound},
		{"namespaces bind CI keys", namespaceBindsKeys},
		{"a key refers to what exists", keyRefersToWhatExists},
	})
}

func getKey(w *world, key id.KeyID) account.Key {
	w.Helper()
	return read(w, ports.Tx.Keys, ports.Keys.Get, key)
}

func keyComesBack(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	w.equal("the key", getKey(w, k.ID), k)
	w.missing("an unknown key", reading(ports.Tx.Keys, ports.Keys.Get, "00000000"))
}

func keysAreListed(w *world) {
	_, theirs := w.addAccount("bob@example.com")
	w.addKey(account.FullAccount, theirs)
	var want []account.Key
	for i := range 3 {
		k := keyOf(w.account, account.FullAccount, func(k *account.Key) { k.Label, k.CreatedAt = numbered(i), minutes(i) })
		w.update(writing2(ports.Tx.Keys, ports.Keys.Add, k, nil))
		want = append([]account.Key{k}, want...)
	}
	w.equal("the account's keys", read(w, ports.Tx.Keys, ports.Keys.List, w.account.ID), want)
}

func replacedKeyKeepsReach(w *world) {
	r := w.addDatabase("shop")
	every := []database.Record{r, w.addDatabase("other")}
	old := w.addKey(account.SelectedDatabases, w.account, r.ID)
	fresh, c := old, keyOf(w.account, old.Scope)
	fresh.ID, fresh.Hash = c.ID, c.Hash
	w.update(writing2(ports.Tx.Keys, ports.Keys.Replace, old.ID, fresh))
	w.equal("the replaced key", getKey(w, fresh.ID), fresh)
	w.missing("the old key", reading(ports.Tx.Keys, ports.Keys.Get, old.ID))
	viewer := database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: fresh.ID, Scope: fresh.Scope}
	w.wantSeen("the replaced key", viewer, every, seen{r.ID: account.Owner})
	w.unknown("replacing a key that does not exist", writing2(ports.Tx.Keys, ports.Keys.Replace, old.ID, fresh))
}

func revokedKeyStays(w *world) {
	k := w.addKey(account.FullAccount, w.account)
	at := minutes(1)
	k.RevokedAt = &at
	w.update(writing(ports.Tx.Keys, ports.Keys.Revoke, k))
	w.equal("the keys with the revoked one", read(w, ports.Tx.Keys, ports.Keys.List, w.account.ID), []account.Key{k})
	k.ID = "00000000"
	w.unknown("revoking a key that does not exist", writing(ports.Tx.Keys, ports.Keys.Revoke, k))
}

func keyIsBound(w *world) {
	end := minutes(60)
	k := keyOf(w.account, account.FullAccount, func(k *account.Key) { k.ExpiresAt, k.Networks = &end, "10.0.0.0/8 2001:db8::/32" })
	w.update(writing2(ports.Tx.Keys, ports.Keys.Add, k, nil))
	w.equal("the key", getKey(w, k.ID), k)

	old, c := k.ID, keyOf(w.account, k.Scope)
	k.ID, k.Hash = c.ID, c.Hash
	w.update(writing2(ports.Tx.Keys, ports.Keys.Replace, old, k))
	w.equal("the replaced key", getKey(w, k.ID), k)

	later := minutes(120)
	k.ExpiresAt, k.Networks = &later, "192.0.2.7/32"
	bound := k
	bound.Label, bound.RevokedAt = "not stored", &later
	w.update(writing(ports.Tx.Keys, ports.Keys.Bind, bound))
	w.equal("the key with other bounds", getKey(w, k.ID), k)
	k.ExpiresAt, k.Networks = nil, ""
	w.update(writing(ports.Tx.Keys, ports.Keys.Bind, k))
	w.equal("the key without bounds", getKey(w, k.ID), k)
	k.ID = "00000000"
	w.unknown("binding a key that does not exist", writing(ports.Tx.Keys, ports.Keys.Bind, k))
}

func namespaceBindsKeys(w *world) {
	n := w.addNamespace("main")
	w.equal("the namespace", read(w, ports.Tx.Namespaces, ports.Namespaces.Get, n.ID), n)
	k := w.addCIKey(n, 0)
	w.equal("the CI key", getKey(w, k.ID), k)

	again := n
	again.ID = newID[id.NamespaceID]()
	w.refused("a namespace whose name is in use", invalid("name"), writing(ports.Tx.Namespaces, ports.Namespaces.Add, again))
	_, theirs := w.addAccount("bob@example.com")
	again.AccountID = theirs.ID
	w.update(writing(ports.Tx.Namespaces, ports.Namespaces.Add, again))
	w.missing("an unknown namespace", reading(ports.Tx.Namespaces, ports.Namespaces.Get, newID[id.NamespaceID]()))
}

func keyRefersToWhatExists(w *world) {
	k := keyOf(w.account, account.SelectedDatabases)
	w.unknown("a key for a database that does not exist",
		writing2(ports.Tx.Keys, ports.Keys.Add, k, []id.DatabaseID{newID[id.DatabaseID]()}))
	w.missing("the refused key", reading(ports.Tx.Keys, ports.Keys.Get, k.ID))
}
