package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Namespaces is the suite of ports.Namespaces and ports.Trusts.
func Namespaces(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"namespaces are listed by account", namespacesAreListed},
		{"a revoked namespace ends its keys and trusts, and no others", revokedNamespaceEndsAll},
		{"a namespace is locked for one at a time", namespaceLockWaits},
		{"exchanged keys that work are counted", liveKeysAreCounted},
		{"a namespace has each trust once", trustIsThereOnce},
		{"a removed trust ends the keys that it made", removedTrustEndsKeys},
		{"a token is spent once, by whomever", tokenIsSpentOnce},
		{"what is over is swept, in pieces", endedIsSwept},
	})
}

func (w *world) addNamespace(name string) account.Namespace {
	w.Helper()
	return w.namespaceOf(w.account, name)
}

func (w *world) addTrust(n account.Namespace, minute int) citoken.Trust {
	w.Helper()
	t := citoken.Trust{
		ID: newID[id.TrustID](), NamespaceID: n.ID, Issuer: "https://ci.example.org", Audience: "pgherd",
		Subject: citoken.Pattern("repo:acme/" + numbered(minute) + ":**"), CreatedAt: minutes(minute),
	}
	w.update(writing(ports.Tx.Trusts, ports.Trusts.Add, t))
	return t
}

// ciKey was exchanged at a minute, for an hour.
func (w *world) ciKey(n account.Namespace, minute int) account.Key {
	_, c := account.NewKey(account.CIKey, randomBase62())
	until := minutes(minute + 60)
	return account.Key{
		ID: c.ID, Kind: account.CIKey, AccountID: n.AccountID, UserID: w.user.ID, NamespaceID: n.ID, Label: n.Name,
		Scope: account.SelectedDatabases, Hash: c.Hash[:], CreatedAt: minutes(minute), ExpiresAt: &until,
		TrustID: newID[id.TrustID](), Issuer: "https://ci.example.org", Subject: "repo:acme/shop:pull_request",
	}
}

func (w *world) addCIKey(n account.Namespace, minute int, change ...func(*account.Key)) account.Key {
	w.Helper()
	k := changed(w.ciKey(n, minute), change)
	w.update(writing2(ports.Tx.Keys, ports.Keys.Add, k, nil))
	return k
}

// stored is a key that no token was exchanged for.
func stored(k *account.Key) { k.ExpiresAt, k.TrustID, k.Issuer, k.Subject = nil, "", "", "" }

func namespacesAreListed(w *world) {
	first, second := w.addNamespace("first"), w.addNamespace("second")
	if second.ID < first.ID {
		first, second = second, first
	}
	_, theirs := w.addAccount("bob@example.com")
	w.equal("the namespaces", read(w, ports.Tx.Namespaces, ports.Namespaces.List, w.account.ID), []account.Namespace{first, second})
	w.equal("another account's", len(read(w, ports.Tx.Namespaces, ports.Namespaces.List, theirs.ID)), 0)
	older, newer := w.addCIKey(first, 1, stored), w.addCIKey(first, 2)
	w.addCIKey(second, 3)
	w.addKey(account.FullAccount, w.account)
	w.equal("the keys", read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, first.ID), []account.Key{newer, older})
	used := minutes(5)
	noError(w, w.Admissions.Touch(w.Context(), map[id.KeyID]time.Time{older.ID: used}))
	older.LastUsedAt = &used
	w.equal("the keys after a use", read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, first.ID), []account.Key{newer, older})
}

func revokedNamespaceEndsAll(w *world) {
	ended, other := w.addNamespace("ended"), w.addNamespace("other")
	at, before := minutes(9), minutes(3)
	keys := []account.Key{
		w.addCIKey(ended, 2), w.addCIKey(ended, 1, stored), w.addCIKey(ended, 0, func(k *account.Key) { k.RevokedAt = &before }),
	}
	kept, trust := w.addCIKey(other, 0), w.addTrust(other, 1)
	w.addTrust(ended, 1)
	ended.RevokedAt = &at
	w.update(writing(ports.Tx.Namespaces, ports.Namespaces.Revoke, ended))
	w.equal("the namespace", read(w, ports.Tx.Namespaces, ports.Namespaces.Get, ended.ID), ended)
	keys[0].RevokedAt, keys[1].RevokedAt = &at, &at
	w.equal("its keys", read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, ended.ID), keys)
	w.equal("its trusts", len(read(w, ports.Tx.Trusts, ports.Trusts.List, ended.ID)), 0)
	w.equal("another one's keys", read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, other.ID), []account.Key{kept})
	w.equal("another one's trusts", read(w, ports.Tx.Trusts, ports.Trusts.List, other.ID), []citoken.Trust{trust})
	ended.ID = newID[id.NamespaceID]()
	w.unknown("one that does not exist", writing(ports.Tx.Namespaces, ports.Namespaces.Revoke, ended))
}

// namespaceLockWaits has many add a key each where none is yet.
func namespaceLockWaits(w *world) {
	n := w.addNamespace("main")
	w.race(8, nil, func(int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Namespaces().Lock(ctx, n.ID); err != nil {
				return err
			}
			live, err := tx.Namespaces().Live(ctx, n.ID, epoch)
			if err != nil || live.Number > 0 {
				return err
			}
			return tx.Keys().Add(ctx, w.ciKey(n, 0), nil)
		}
	})
	w.equal("keys", len(read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, n.ID)), 1)
	w.unknown("locking one that does not exist", reading(ports.Tx.Namespaces, ports.Namespaces.Lock, newID[id.NamespaceID]()))
	if err := w.Store.View(w.Context(), reading(ports.Tx.Namespaces, ports.Namespaces.Lock, n.ID)); err == nil {
		w.Error("a view locks a namespace")
	}
}

func liveKeysAreCounted(w *world) {
	n, at := w.addNamespace("main"), minutes(1)
	live := func(now time.Time) citoken.Live {
		return read2(w, ports.Tx.Namespaces, ports.Namespaces.Live, n.ID, now)
	}
	w.equal("none", live(epoch), citoken.Live{})
	w.addCIKey(n, 0, stored)
	w.addCIKey(n, 0, func(k *account.Key) { k.RevokedAt = &at })
	w.addCIKey(w.addNamespace("other"), 0)
	w.addCIKey(n, 20)
	first := w.addCIKey(n, 10)
	w.equal("two", live(minutes(20)), citoken.Live{Number: 2, FirstEnd: first.ExpiresAt})
	later := minutes(80)
	w.equal("at the end of one", live(minutes(70)), citoken.Live{Number: 1, FirstEnd: &later})
}

func trustIsThereOnce(w *world) {
	n, other := w.addNamespace("main"), w.addNamespace("other")
	first, second := w.addTrust(n, 1), w.addTrust(n, 2)
	same := w.addTrust(other, 1)
	w.equal("the trusts", read(w, ports.Tx.Trusts, ports.Trusts.List, n.ID), []citoken.Trust{first, second})
	w.equal("a trust", read(w, ports.Tx.Trusts, ports.Trusts.Get, same.ID), same)
	again := first
	again.ID, again.CreatedAt = newID[id.TrustID](), minutes(9)
	w.refused("the same again", invalid("subject"), writing(ports.Tx.Trusts, ports.Trusts.Add, again))
	again.Audience = "another"
	w.update(writing(ports.Tx.Trusts, ports.Trusts.Add, again))
	again.ID, again.NamespaceID = newID[id.TrustID](), newID[id.NamespaceID]()
	w.unknown("one of no namespace", writing(ports.Tx.Trusts, ports.Trusts.Add, again))
	w.missing("an unknown trust", reading(ports.Tx.Trusts, ports.Trusts.Get, newID[id.TrustID]()))
}

func removedTrustEndsKeys(w *world) {
	n := w.addNamespace("main")
	gone, kept := w.addTrust(n, 1), w.addTrust(n, 2)
	by := func(t citoken.Trust) func(*account.Key) { return func(k *account.Key) { k.TrustID = t.ID } }
	ended, other, hand := w.addCIKey(n, 3, by(gone)), w.addCIKey(n, 2, by(kept)), w.addCIKey(n, 1, stored)
	at := minutes(5)
	w.update(writing2(ports.Tx.Trusts, ports.Trusts.Remove, gone.ID, at))
	ended.RevokedAt = &at
	w.equal("the keys", read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, n.ID), []account.Key{ended, other, hand})
	w.equal("the trusts", read(w, ports.Tx.Trusts, ports.Trusts.List, n.ID), []citoken.Trust{kept})
	w.unknown("removing it again", writing2(ports.Tx.Trusts, ports.Trusts.Remove, gone.ID, at))
}

func spent(mark byte, until time.Time) citoken.Spent {
	s := citoken.Spent{Mark: make([]byte, 32), Until: until}
	s.Mark[31] = mark
	return s
}

// spends spends a token, and reports whether it was not spent before.
func (w *world) spends(host ports.Store, s citoken.Spent) bool {
	w.Helper()
	fresh, err := take(w.Context(), host, func(ctx context.Context, tx ports.Tx) (bool, error) { return tx.Trusts().Spend(ctx, s) })
	if err != nil {
		w.Error(err)
	}
	return fresh
}

func tokenIsSpentOnce(w *world) {
	hosts := w.stores()
	var won atomic.Int64
	together(w.T, 50, func(i int) {
		if w.spends(hosts[i%2], spent(1, minutes(1))) {
			won.Add(1)
		}
	})
	w.equal("who spent it", won.Load(), int64(1))
	w.equal("another token", w.spends(w.Store, spent(2, minutes(1))), true)
	w.equal("the first one again", w.spends(w.Store, spent(1, minutes(9))), false)
}

func endedIsSwept(w *world) {
	n := w.addNamespace("main")
	for i := range 3 {
		w.spends(w.Store, spent(byte(i), minutes(i)))
		w.addCIKey(n, i)
	}
	forever := w.addCIKey(n, 0, stored)
	sweep := func(limit int) int {
		return found(w.update, func(ctx context.Context, tx ports.Tx) (int, error) {
			return tx.Trusts().Sweep(ctx, minutes(2), minutes(62), limit)
		})
	}
	w.equal("a first piece", sweep(1), 2)
	w.equal("the rest", sweep(10), 2)
	w.equal("nothing", sweep(10), 0)
	left := read(w, ports.Tx.Namespaces, ports.Namespaces.Keys, n.ID)
	if len(left) != 2 || left[1].ID != forever.ID {
		w.Errorf("left are %+v", left)
	}
	w.equal("one that is over, again", w.spends(w.Store, spent(0, minutes(9))), true)
	w.equal("one that is not over", w.spends(w.Store, spent(2, minutes(9))), false)
}
