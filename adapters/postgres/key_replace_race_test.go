package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// A member is removed while a key of the member is being replaced: the removal waits, and unbinds the key under its new ID.
// Otherwise a later membership would open the database to it by itself.
func TestAKeyIsReplacedWhileItsUserIsRemoved(t *testing.T) {
	w := newInviting(t, 1)
	db := w.databases[0].Record().ID
	bob, _, err := w.processes[0].Operator.CreateAccount(t.Context(), operator.NewAccount{
		Email: "bob@example.org", Name: "Bob", Plan: account.Pro,
	})
	check.NoError(t, err)
	added := check.Must(w.processes[0].Members.Add(t.Context(), w.databases[0], "bob@example.org", account.Admin))(t)
	key, _, err := w.processes[1].Operator.CreateKey(t.Context(), keys.NewKey{
		AccountID: bob.ID, Label: "k", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{db},
	})
	check.NoError(t, err)
	replaced, removed := key, make(chan error, 1)
	replaced.ID = "ZZZZZZZZ"
	check.NoError(t, w.store.Update(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Keys().Replace(ctx, key.ID, replaced); err != nil {
			return err
		}
		go func() { removed <- w.processes[0].Members.Remove(t.Context(), w.databases[0], added.Member.ID) }()
		select {
		case err := <-removed:
			removed <- err
		case <-time.After(300 * time.Millisecond): // it waits
		}
		return nil
	}))
	check.NoError(t, <-removed)
	check.Must(w.processes[0].Members.Add(t.Context(), w.databases[0], "bob@example.org", account.Viewer))(t)
	v := database.Viewer{AccountID: bob.ID, UserID: key.UserID, KeyID: replaced.ID, Scope: key.Scope}
	err = w.store.View(t.Context(), func(ctx context.Context, tx ports.Tx) error {
		_, _, err := access.See(ctx, tx, v, db)
		return err
	})
	if !errors.Is(err, ports.ErrNoRow) {
		t.Errorf("the replaced key reaches the database: %v", err)
	}
}
