package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Operators is the suite of ports.Operators.
func Operators(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"who is named is listed, until they are removed", operatorsAreListed},
		{"a session says whose it is", sessionsNameOperators},
	})
}

// names names a person, and reports whether that one was not named before.
func (w *world) names(user id.UserID, minute int) bool {
	w.Helper()
	return found(w.update, func(ctx context.Context, tx ports.Tx) (bool, error) {
		return tx.Operators().Add(ctx, user, minutes(minute))
	})
}

func operatorsAreListed(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	w.equal("a new one", w.names(bob.ID, 2), true)
	w.equal("another", w.names(w.user.ID, 1), true)
	w.equal("the first again", w.names(bob.ID, 0), false)
	w.update(inOrder(addPasskey(w.passkey(bob.ID, "a", 1)), addPasskey(w.passkey(bob.ID, "b", 1))))
	first := ports.OperatorEntry{UserID: w.user.ID, Email: w.user.Email, Name: w.user.Name, AddedAt: minutes(1)}
	second := ports.OperatorEntry{UserID: bob.ID, Email: bob.Email, Name: bob.Name, AddedAt: minutes(2), Passkeys: 2}
	list := func() []ports.OperatorEntry {
		return found(w.view, func(ctx context.Context, tx ports.Tx) ([]ports.OperatorEntry, error) { return tx.Operators().List(ctx) })
	}
	w.equal("the list", list(), []ports.OperatorEntry{first, second})
	w.update(writing(ports.Tx.Operators, ports.Operators.Remove, w.user.ID))
	w.equal("the list after a removal", list(), []ports.OperatorEntry{second})
	w.unknown("removing that one again", writing(ports.Tx.Operators, ports.Operators.Remove, w.user.ID))
	w.unknown("nobody", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Operators().Add(ctx, newID[id.UserID](), epoch)
		return err
	})
}

func sessionsNameOperators(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	w.names(bob.ID, 1)
	w.update(addPasskey(w.passkey(w.user.ID, "a", 1)))
	mine, bobs := w.addSession(w.user.ID, 1), w.addSession(bob.ID, 1)
	for of, want := range map[id.SessionID][2]bool{mine.ID: {false, true}, bobs.ID: {true, false}} {
		got := read(w, ports.Tx.Sessions, ports.Sessions.ByToken, token.Of(string(of)))
		w.equal("operator, passkey", [2]bool{got.Operator, got.Passkey}, want)
	}
}
