package conformance

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/ports"
)

// Vault is the suite of ports.Vault.
func Vault(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"the walk meets every value once, in order", walkMeetsAll},
		{"a value is replaced where it is still the same", valueIsReplaced},
	})
}

// fillVault stores two databases with two logins each, a second server and two endpoints.
func fillVault(w *world) (want []ports.SealedValue) {
	second := w.addServer("second", 1)
	want = append(want,
		ports.SealedValue{Ref: "server/" + string(w.server.ID), Context: w.server.SecretContext(), Sealed: w.server.SealedSecret},
		ports.SealedValue{Ref: "server/" + string(second.ID), Context: second.SecretContext(), Sealed: second.SealedSecret},
	)
	for i := range 2 {
		e := w.addEndpoint(func(e *webhook.Endpoint) { e.SealedSecret = []byte{byte(i)} })
		ref := "webhook/" + string(e.ID)
		want = append(want, ports.SealedValue{Ref: ref, Context: webhook.SecretContext(e.ID), Sealed: e.SealedSecret})
		r := w.addDatabase(numbered(i))
		for _, login := range []database.Login{database.OwnerLogin, database.ReadonlyLogin} {
			l := ownerOf(r.ID)
			l.Login, l.Generation, l.Sealed = login, int64(i+1), []byte(login)
			w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Logins().Add(ctx, l) })
			ref := "login/" + string(r.ID) + "/" + string(login)
			want = append(want, ports.SealedValue{Ref: ref, Context: l.Context(), Sealed: l.Sealed})
		}
	}
	slices.SortFunc(want, func(a, b ports.SealedValue) int { return cmp.Compare(a.Ref, b.Ref) })
	return want
}

func walk(w *world, limit int) (values []ports.SealedValue) {
	w.Helper()
	after := ""
	for {
		var batch []ports.SealedValue
		w.view(func(ctx context.Context, tx ports.Tx) (err error) {
			batch, err = tx.Vault().Next(ctx, after, limit)
			return err
		})
		if len(batch) == 0 {
			return values
		}
		if len(batch) > limit {
			w.Fatalf("%d values where at most %d were asked for", len(batch), limit)
		}
		values = append(values, batch...)
		after = batch[len(batch)-1].Ref
	}
}

func walkMeetsAll(w *world) {
	want := fillVault(w)
	for limit := 1; limit <= len(want)+1; limit++ {
		w.equal("the walk", walk(w, limit), want)
	}
}

func valueIsReplaced(w *world) {
	want := fillVault(w)
	for i, v := range want {
		replace := func(sealed string) func(ctx context.Context, tx ports.Tx) error {
			return func(ctx context.Context, tx ports.Tx) error { return tx.Vault().Replace(ctx, v, []byte(sealed)) }
		}
		w.update(replace("first"))
		w.update(replace("second")) // v is no longer what is stored
		want[i].Sealed = []byte("first")
		w.equal("after one was replaced", walk(w, 10), want)
	}
}
