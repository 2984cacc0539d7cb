package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// A key that is made while its user is being removed from the database is refused: nobody would take it from the user any more,
// and a later membership would give it the database.
func TestAKeyIsNotMadeWhileItsUserIsRemoved(t *testing.T) {
	w := newInviting(t, 1)
	db := w.databases[0].Record().ID
	bob, _, err := w.processes[0].Operator.CreateAccount(t.Context(), operator.NewAccount{
		Email: "bob@example.org", Name: "Bob", Plan: account.Pro,
	})
	check.NoError(t, err)
	added := check.Must(w.processes[0].Members.Add(t.Context(), w.databases[0], "bob@example.org", account.Admin))(t)
	made := make(chan error, 1)
	check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if _, err := tx.Databases().Lock(ctx, db); err != nil {
			return err
		}
		go func() {
			_, _, err := w.processes[1].Operator.CreateKey(t.Context(), keys.NewKey{
				AccountID: bob.ID, Label: "k", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
			})
			made <- err
		}()
		select {
		case err := <-made:
			made <- err
		case <-time.After(300 * time.Millisecond): // it waits
		}
		return tx.Members().Remove(ctx, added.Member.Membership)
	}))
	if err := <-made; !fault.Has(err, fault.ValidationError) {
		t.Errorf("the key: %v", err)
	}
}
