package store

import (
	"context"
	"errors"
	"fmt"
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

func currentSigningKey(ctx context.Context, tx ports.Tx) (certificate.Key, error) {
	return tx.SigningKeys().Current(ctx)
}

func (w *world) wantsSigningKey(want certificate.Key) {
	w.Helper()
	w.view(func(ctx context.Context, tx ports.Tx) error {
		k, err := currentSigningKey(ctx, tx)
		w.equal("the key that signs", k, want)
		return err
	})
}

func (w *world) wantsNoSigningKey() {
	w.Helper()
	w.missing("the key that signs", func(ctx context.Context, tx ports.Tx) error {
		_, err := currentSigningKey(ctx, tx)
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
		w.refused(what, ports.ErrNoRow, writing2(ports.Tx.SigningKeys, ports.SigningKeys.Retire, k, minutes(3)))
	}
	w.equal("the keys", read(w, ports.Tx.SigningKeys, ports.SigningKeys.List, ports.Page{}), []certificate.Key{first})
}

// oneReplacesKey has two read which key signs, and then both replace it.
func oneReplacesKey(w *world) {
	first := w.addSigningKey(1)
	fresh := []certificate.Key{signingKey(2), signingKey(3)}
	errs := w.bothAtOnce(func(ctx context.Context, tx ports.Tx, who int) error {
		if err := tx.SigningKeys().Retire(ctx, first.ID, minutes(4)); err != nil {
			return err
		}
		return tx.SigningKeys().Add(ctx, fresh[who])
	})
	w.wantsSigningKey(w.winner(fresh, errs, ports.ErrNoRow))
	w.equal("keys", len(read(w, ports.Tx.SigningKeys, ports.SigningKeys.List, ports.Page{})), 2)
}

func oneAddsKey(w *world) {
	fresh := []certificate.Key{signingKey(2), signingKey(3)}
	errs := w.bothAtOnce(func(ctx context.Context, tx ports.Tx, who int) error { return tx.SigningKeys().Add(ctx, fresh[who]) })
	w.wantsSigningKey(w.winner(fresh, errs, invalid("key")))
}

func (w *world) bothAtOnce(do func(ctx context.Context, tx ports.Tx, who int) error) (errs [2]error) {
	together(w.T, len(errs), func(who int) {
		errs[who] = w.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error { return do(ctx, tx, who) })
	})
	return errs
}

// winner is the key of the one who had no error; the other one's is like want.
func (w *world) winner(keys []certificate.Key, errs [2]error, want error) certificate.Key {
	w.Helper()
	for i, err := range errs {
		if err == nil && sameError(errs[1-i], want) {
			return keys[i]
		}
	}
	w.Fatal(fmt.Errorf("want one to succeed: %w", errors.Join(errs[:]...)))
	return certificate.Key{}
}

func signingKeyPages(w *world) {
	var all []certificate.Key
	for i := range 5 {
		all = append(all, w.retires(w.addSigningKey(i/2), 10+i))
	}
	position := func(k certificate.Key) ports.Position { return ports.Position{At: k.CreatedAt, ID: string(k.ID)} }
	pagesOf(w, all, position, -1, func(ctx context.Context, tx ports.Tx, p ports.Page) ([]certificate.Key, error) {
		return tx.SigningKeys().List(ctx, p)
	})
}
