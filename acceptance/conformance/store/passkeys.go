package store

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Passkeys is the suite of ports.Passkeys.
func Passkeys(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a passkey comes back as it was stored", passkeyComesBack},
		{"a credential is one person's", credentialsAreUnique},
		{"a ceremony is taken once", ceremonyIsTakenOnce},
		{"old ceremonies are forgotten", ceremoniesAreForgotten},
	})
}

func (w *world) passkey(of id.UserID, credential string, minute int) person.Passkey {
	return person.Passkey{
		ID: newID[id.PasskeyID](), UserID: of, Handle: make([]byte, person.HandleBytes), Credential: []byte(credential),
		Record: []byte{0, 255}, Name: "a ünicode phone", CreatedAt: minutes(minute),
	}
}

func addPasskey(p person.Passkey) transaction {
	return writing(ports.Tx.Passkeys, ports.Passkeys.Add, p)
}

func passkeyComesBack(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	second, first, theirs := w.passkey(w.user.ID, "b", 2), w.passkey(w.user.ID, "a", 1), w.passkey(bob.ID, "c", 1)
	w.update(inOrder(addPasskey(second), addPasskey(first), addPasskey(theirs)))
	w.equal("the list", read(w, ports.Tx.Passkeys, ports.Passkeys.Of, w.user.ID), []person.Passkey{first, second})
	w.equal("by its credential", read(w, ports.Tx.Passkeys, ports.Passkeys.ByCredential, []byte("c")), theirs)
	w.missing("an unknown credential", reading(ports.Tx.Passkeys, ports.Passkeys.ByCredential, []byte("d")))
	used := first
	used.Record, used.UsedAt = []byte("newer"), new(minutes(3))
	w.update(writing(ports.Tx.Passkeys, ports.Passkeys.Save, used))
	w.equal("as saved", read(w, ports.Tx.Passkeys, ports.Passkeys.ByCredential, []byte("a")), used)
	w.unknown("saving an unknown one", writing(ports.Tx.Passkeys, ports.Passkeys.Save, w.passkey(w.user.ID, "e", 1)))
	w.unknown("removing another's", writing2(ports.Tx.Passkeys, ports.Passkeys.Remove, w.user.ID, theirs.ID))
	w.update(writing2(ports.Tx.Passkeys, ports.Passkeys.Remove, w.user.ID, first.ID))
	w.equal("the list without it", read(w, ports.Tx.Passkeys, ports.Passkeys.Of, w.user.ID), []person.Passkey{second})
	w.unknown("one of nobody", addPasskey(w.passkey(newID[id.UserID](), "f", 1)))
}

func credentialsAreUnique(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	w.update(addPasskey(w.passkey(w.user.ID, "a", 1)))
	w.refused("the same credential again", invalid("passkey"), addPasskey(w.passkey(bob.ID, "a", 1)))
}

func ceremonyIsTakenOnce(w *world) {
	of, in := token.Of("one"), newID[id.SessionID]()
	for _, c := range []person.Ceremony{
		person.Asked(of, in, []byte("handle"), []byte("state"), epoch), person.Asked(of, "", []byte{}, []byte("state"), epoch),
	} {
		w.update(writing(ports.Tx.Passkeys, ports.Passkeys.Ask, c))
		w.equal("as stored", readLocked(w, ports.Tx.Passkeys, ports.Passkeys.Take, of), c)
		w.unknown("the same again", reading(ports.Tx.Passkeys, ports.Passkeys.Take, of))
	}
}

func ceremoniesAreForgotten(w *world) {
	for n := range 4 {
		c := person.Asked(token.Of(numbered(n)), "", []byte{}, []byte{}, minutes(n))
		w.update(writing(ports.Tx.Passkeys, ports.Passkeys.Ask, c))
	}
	ends := int(person.CeremonyTime.Minutes())
	for _, step := range []struct{ before, limit, first int }{{ends, 9, 0}, {ends + 3, 1, 1}, {ends + 3, 9, 3}} {
		w.update(writing2(ports.Tx.Passkeys, ports.Passkeys.Forget, minutes(step.before), step.limit))
		err := w.Store.Update(w.Context(), inOrder(
			reading(ports.Tx.Passkeys, ports.Passkeys.Take, token.Of(numbered(step.first))), changesItsMind))
		w.equal(fmt.Sprintf("the first that is left after %+v", step), sameError(err, errChanged), true)
		if step.first > 0 {
			w.unknown("the one before", reading(ports.Tx.Passkeys, ports.Passkeys.Take, token.Of(numbered(step.first-1))))
		}
	}
}
