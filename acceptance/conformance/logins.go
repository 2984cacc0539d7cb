package conformance

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Logins is the suite of ports.Logins.
func Logins(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a login comes back as it was stored", loginComesBack},
		{"the owner is listed first", ownerIsFirst},
		{"a login belongs to a database", loginBelongs},
	})
}

func ownerOf(db id.DatabaseID) ports.LoginSecret {
	return ports.LoginSecret{
		DatabaseID: db, Login: database.OwnerLogin, Username: "shop", Generation: 1,
		Verifier: "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy", Sealed: []byte{0, 255, '\\', '\'', 10},
	}
}

func loginComesBack(w *world) {
	l := ownerOf(w.addDatabase("shop").ID)
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Logins().Add(ctx, l) })
	w.view(func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Logins().Get(ctx, l.DatabaseID, l.Login)
		w.equal("the login", got, l)
		return err
	})
	w.missing("a login that was not made", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Logins().Get(ctx, l.DatabaseID, database.RuntimeLogin)
		return err
	})
}

func ownerIsFirst(w *world) {
	r := w.addDatabase("shop")
	w.update(func(ctx context.Context, tx ports.Tx) error {
		for _, login := range []database.Login{database.ReadonlyLogin, database.OwnerLogin, database.RuntimeLogin} {
			l := ownerOf(r.ID)
			l.Login = login
			if err := tx.Logins().Add(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
	w.view(func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Logins().List(ctx, r.ID)
		var got []database.Login
		for _, l := range list {
			got = append(got, l.Login)
		}
		w.equal("the logins in order", got, database.Managed.Logins())
		return err
	})
}

func loginBelongs(w *world) {
	l := ownerOf(w.addDatabase("shop").ID)
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Logins().Add(ctx, l) })
	err := w.Store.Update(w.Context(), func(ctx context.Context, tx ports.Tx) error { return tx.Logins().Add(ctx, l) })
	if err == nil {
		w.Error("the same login was added twice")
	}
	w.refused("a login of no database", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Logins().Add(ctx, ownerOf(newID[id.DatabaseID]()))
	})
}
