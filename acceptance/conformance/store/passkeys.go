package store

import (
	"context"
	"fmt"
	"sync/atomic"
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
		{"a challenge is spent once, by whomever", challengeIsSpentOnce},
		{"old challenges are forgotten", challengesAreForgotten},
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

// spendsChallenge spends a challenge until a minute, and reports whether it was not spent before.
func (w *world) spendsChallenge(host ports.Store, n, minute int) bool {
	w.Helper()
	fresh, err := take(w.Context(), host, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Passkeys().Spend(ctx, token.Of(numbered(n)), minutes(minute))
	})
	if err != nil {
		w.Error(err)
	}
	return fresh
}

func challengeIsSpentOnce(w *world) {
	hosts := w.stores()
	var won atomic.Int64
	together(w.T, 50, func(i int) {
		if w.spendsChallenge(hosts[i%2], 1, 1) {
			won.Add(1)
		}
	})
	w.equal("who spent it", won.Load(), int64(1))
	w.equal("another one", w.spendsChallenge(w.Store, 2, 1), true)
	w.equal("the first one again", w.spendsChallenge(w.Store, 1, 9), false)
}

func challengesAreForgotten(w *world) {
	for _, step := range []struct{ before, limit, forgotten int }{{0, 9, 0}, {3, 2, 2}, {3, 9, 3}, {9, 9, 4}} {
		for n := range 4 {
			w.spendsChallenge(w.Store, n, n)
		}
		w.update(writing2(ports.Tx.Passkeys, ports.Passkeys.Forget, minutes(step.before), step.limit))
		fresh := 0
		for n := range 4 {
			if w.spendsChallenge(w.Store, n, n) {
				fresh++
			}
		}
		w.equal(fmt.Sprintf("forgotten after %+v", step), fresh, step.forgotten)
	}
}
