package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/keyring"
	"github.com/pgherd/pgherd/ports"
)

// KeyRings is the suite of ports.KeyRings.
func KeyRings(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"one key is staged and one the primary", oneOfEachStatus},
		{"who decides over the ring takes turns", ringTurns},
		{"what a host has is as it said last", lastReportCounts},
	})
}

func (w *world) ringKeys() keyring.Keys {
	w.Helper()
	return read0(w, ports.Tx.KeyRings, ports.KeyRings.Keys)
}

func puttingKey(k keyring.Key) transaction { return writing(ports.Tx.KeyRings, ports.KeyRings.Put, k) }

func oneOfEachStatus(w *world) {
	w.equal("keys", len(w.ringKeys()), 0)
	at := minutes(3)
	first := keyring.Key{Fingerprint: "b1", Status: keyring.Primary, Since: epoch, ResealedAt: &at}
	second := keyring.Key{Fingerprint: "a2", Status: keyring.Staged, Since: minutes(1)}
	w.update(puttingKey(first))
	w.update(puttingKey(second))
	w.equal("keys", w.ringKeys(), keyring.Keys{second, first})
	for _, status := range []keyring.Status{keyring.Primary, keyring.Staged} {
		other := keyring.Key{Fingerprint: "c3", Status: status, Since: epoch}
		w.fails(fmt.Sprintf("two keys are %s", status), puttingKey(other))
	}
	first.Status, first.Since, first.ResealedAt = keyring.Old, minutes(4), nil
	second.Status, second.Since = keyring.Primary, minutes(4)
	w.update(inOrder(puttingKey(first), puttingKey(second)))
	w.equal("keys", w.ringKeys(), keyring.Keys{second, first})
}

// ringTurns has many count by what they read, which comes out right only where they take turns.
func ringTurns(w *world) {
	const n = 8
	w.race(n, nil, func(int) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			if err := tx.KeyRings().Lock(ctx); err != nil {
				return err
			}
			keys, err := tx.KeyRings().Keys(ctx)
			if err != nil {
				return err
			}
			next := keyring.Fingerprint(rune('a' + len(keys)))
			return tx.KeyRings().Put(ctx, keyring.Key{Fingerprint: next, Status: keyring.Old, Since: epoch})
		}
	})
	w.equal("keys", len(w.ringKeys()), n)
}

func lastReportCounts(w *world) {
	want := func(hosts ...keyring.Host) {
		w.Helper()
		w.equal("hosts", read0(w, ports.Tx.KeyRings, ports.KeyRings.Hosts), hosts)
	}
	host := func(name string, at time.Time, keys ...keyring.Fingerprint) keyring.Host {
		return keyring.Host{ID: newID[id.RingHostID](), Name: name, Keys: keys, Seals: keys[0], SeenAt: at}
	}
	report := func(h keyring.Host) { w.update(writing(ports.Tx.KeyRings, ports.KeyRings.Report, h)) }
	want()
	b, a, gone := host("b", minutes(1), "1"), host("a", minutes(2), "1", "2"), host("c", epoch, "1")
	report(b)
	report(gone)
	report(a)
	want(a, b, gone)
	b.Keys, b.Seals, b.SeenAt = []keyring.Fingerprint{"2", "1"}, "2", minutes(3)
	report(b)
	w.update(writing(ports.Tx.KeyRings, ports.KeyRings.ForgetBefore, minutes(1)))
	want(a, b)
	w.update(writing(ports.Tx.KeyRings, ports.KeyRings.Forget, a.ID))
	w.update(writing(ports.Tx.KeyRings, ports.KeyRings.Forget, newID[id.RingHostID]()))
	want(b)
}
