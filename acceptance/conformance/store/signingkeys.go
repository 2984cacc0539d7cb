package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// SigningKeys is the suite of ports.SigningKeys.
func SigningKeys(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"one key signs at a time", oneKeySigns},
		{"a retired key keeps its public part alone", retiredKeyIsPublic},
		{"of two who replace a key at the same time, one does", oneReplacesKey},
		{"of two who add the first key at the same time, one does", oneAddsKey},
		{"the keys come in pages, newest first", signingKeyPages},
	})
}

func signingKey(minute int) certificate.Key {
	k := certificate.NewKey(newID[id.CertificateKeyID](), [certificate.SeedBytes]byte{byte(minute)}, minutes(minute))
	k.SealedSeed = []byte{0, byte(minute), 255}
	return k
}

func (w *world) addSigningKey(minute int) certificate.Key {
	w.Helper()
	k := signingKey(minute)
	w.update(writing(ports.Tx.SigningKeys, ports.SigningKeys.Add, k))
	return k
}

func (w *world) retires(k certificate.Key, minute int) certificate.Key {
	w.Helper()
	at := minutes(minute)
	w.update(writing2(ports.Tx.SigningKeys, ports.SigningKeys.Retire, k.ID, at))
	k.RetiredAt, k.SealedSeed = &at, nil
	return k
}

func (w *world) wantsSigningKey(want certificate.Key) {
	w.Helper()
	w.equal("the key that signs", read0(w, ports.Tx.SigningKeys, ports.SigningKeys.Current), want)
}

func (w *world) wantsNoSigningKey() {
	w.Helper()
	w.missing("the key that signs", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.SigningKeys().Current(ctx)
		return err
	})
}

func oneKeySigns(w *world) {
	w.wantsNoSigningKey()
	first := w.addSigningKey(1)
	w.refused("a second key", invalid("key"), writing(ports.Tx.SigningKeys, ports.SigningKeys.Add, signingKey(2)))
	w.wantsSigningKey(first)
	w.retires(first, 3)
	w.wantsNoSigningKey()
	w.wantsSigningKey(w.addSigningKey(4))
}

func retiredKeyIsPublic(w *world) {
	first := w.retires(w.addSigningKey(1), 2)
	w.equal("the keys", read(w, ports.Tx.SigningKeys, ports.SigningKeys.List, ports.Page{}), []certificate.Key{first})
	for what, k := range map[string]id.CertificateKeyID{"a retired key": first.ID, "none": newID[id.CertificateKeyID]()} {
		w.unknown(what, writing2(ports.Tx.SigningKeys, ports.SigningKeys.Retire, k, minutes(3)))
	}
	w.equal("the keys", read(w, ports.Tx.SigningKeys, ports.SigningKeys.List, ports.Page{}), []certificate.Key{first})
}

// oneReplacesKey has two read which key signs, and then both replace it.
func oneReplacesKey(w *world) {
	first := w.addSigningKey(1)
	won := w.race(2, ports.ErrNoRow, func(who int) transaction {
		return inOrder(writing2(ports.Tx.SigningKeys, ports.SigningKeys.Retire, first.ID, minutes(4)),
			writing(ports.Tx.SigningKeys, ports.SigningKeys.Add, signingKey(2+who)))
	})
	w.equal("who replaced it", won, 1)
	w.equal("keys", len(read(w, ports.Tx.SigningKeys, ports.SigningKeys.List, ports.Page{})), 2)
}

func oneAddsKey(w *world) {
	w.equal("who added it", w.race(2, invalid("key"), func(who int) transaction {
		return writing(ports.Tx.SigningKeys, ports.SigningKeys.Add, signingKey(2+who))
	}), 1)
}

func signingKeyPages(w *world) {
	var all []certificate.Key
	for i := range 5 {
		all = append(all, w.retires(w.addSigningKey(i/2), 10+i))
	}
	position := func(k certificate.Key) ports.Position { return at(k.CreatedAt, k.ID) }
	pagesOf(w, all, position, -1, paged0(ports.Tx.SigningKeys, ports.SigningKeys.List))
}
