package store

import (
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
		{"a password is replaced, nothing else", loginIsReplaced},
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
	w.update(writing(ports.Tx.Logins, ports.Logins.Add, l))
	w.equal("the login", read2(w, ports.Tx.Logins, ports.Logins.Get, l.DatabaseID, l.Login), l)
	w.missing("a login that was not made", reading2(ports.Tx.Logins, ports.Logins.Get, l.DatabaseID, database.RuntimeLogin))
}

func ownerIsFirst(w *world) {
	r := w.addDatabase("shop")
	for _, login := range []database.Login{database.ReadonlyLogin, database.OwnerLogin, database.RuntimeLogin} {
		l := ownerOf(r.ID)
		l.Login = login
		w.update(writing(ports.Tx.Logins, ports.Logins.Add, l))
	}
	var got []database.Login
	for _, l := range read(w, ports.Tx.Logins, ports.Logins.List, r.ID) {
		got = append(got, l.Login)
	}
	w.equal("the logins in order", got, database.Managed.Logins())
}

func loginBelongs(w *world) {
	l := ownerOf(w.addDatabase("shop").ID)
	w.update(writing(ports.Tx.Logins, ports.Logins.Add, l))
	w.fails("the same login was added twice", writing(ports.Tx.Logins, ports.Logins.Add, l))
	w.unknown("a login of no database", writing(ports.Tx.Logins, ports.Logins.Add, ownerOf(newID[id.DatabaseID]())))
}

func loginIsReplaced(w *world) {
	l, bystander := ownerOf(w.addDatabase("shop").ID), ownerOf(w.addDatabase("other").ID)
	reader := l
	reader.Login, reader.Username, reader.Sealed = database.ReadonlyLogin, "reader", []byte("reader's")
	replacing := func(l ports.LoginSecret) transaction {
		return writing(ports.Tx.Logins, ports.Logins.Replace, l)
	}
	stored := func(of ports.LoginSecret) ports.LoginSecret {
		return read2(w, ports.Tx.Logins, ports.Logins.Get, of.DatabaseID, of.Login)
	}
	for _, added := range []ports.LoginSecret{l, reader, bystander} {
		w.update(writing(ports.Tx.Logins, ports.Logins.Add, added))
	}
	next := l
	next.Generation, next.Verifier, next.Sealed, next.Username = 2, "other", []byte{1, 0, 255}, "elsewhere"
	want := next
	want.Sealed, want.Username = []byte{1, 0, 255}, l.Username
	w.update(replacing(next))
	next.Sealed[0] = 77
	w.equal("the login that was replaced", stored(l), want)
	stored(l).Sealed[0] = 78
	w.equal("after returned bytes changed", stored(l), want)
	w.equal("another login", stored(reader), reader)
	w.equal("another database's login", stored(bystander), bystander)

	ghost := l
	ghost.Login = database.RuntimeLogin
	w.unknown("a login that was not made", replacing(ghost))
	ghost = l
	ghost.DatabaseID = newID[id.DatabaseID]()
	w.unknown("a login of no database", replacing(ghost))
}
