package conformance

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Servers is the suite of ports.Servers.
func Servers(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a server comes back as it was stored", serverComesBack},
		{"a name is unique", serverNameIsUnique},
		{"the one with the most room is picked", roomiestIsPicked},
		{"databases with their accounts", accountsOfServer},
	})
}

func serverComesBack(w *world) {
	second := w.addServer("a-second", 3)
	read := func(want ...server.Server) {
		w.Helper()
		w.view(func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Servers().List(ctx)
			w.equal("the list, by name", list, want)
			if err != nil {
				return err
			}
			got, err := tx.Servers().Get(ctx, want[0].ID)
			w.equal("the server", got, want[0])
			return err
		})
	}
	read(second, w.server)
	second.AgentURL, second.SealedSecret, second.CA = "https://moved:1", []byte{9}, ""
	second.PublicHost, second.PublicPort, second.Capacity, second.Enabled = "moved", 1, 0, false
	w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Save(ctx, second) })
	read(second, w.server)
	w.missing("an unknown server", func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Servers().Get(ctx, newID[id.ServerID]())
		return err
	})
	second.ID = newID[id.ServerID]()
	w.refused("saving an unknown server", ports.ErrNoRow, func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Save(ctx, second)
	})
}

func serverNameIsUnique(w *world) {
	second := w.addServer("second", 3)
	second.Name = w.server.Name
	w.refused("taking another's name", invalid("name"), func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Save(ctx, second)
	})
	second.ID = newID[id.ServerID]()
	w.refused("a name that is in use", invalid("name"), func(ctx context.Context, tx ports.Tx) error {
		return tx.Servers().Add(ctx, second)
	})
}

func roomiestIsPicked(w *world) {
	pick := func() (got server.Server, err error) {
		err = w.Store.View(w.Context(), func(ctx context.Context, tx ports.Tx) (err error) {
			got, err = tx.Servers().Pick(ctx)
			return err
		})
		return got, err
	}
	save := func(s server.Server, change func(*server.Server)) {
		w.Helper()
		change(&s)
		w.update(func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Save(ctx, s) })
	}
	save(w.server, func(s *server.Server) { s.Capacity = 2 })
	second := w.addServer("second", 3)
	for i, want := range []server.Server{second, w.server, second, w.server, second} {
		got, err := pick()
		if err != nil || got.Name != want.Name {
			w.Errorf("database %d goes to %q (%v), want %q", i+1, got.Name, err, want.Name)
		}
		w.addDatabase(numbered(i), nameServer(want.ID))
	}
	if got, err := pick(); !sameError(err, ports.ErrNoRow) {
		w.Errorf("with all servers full %q was picked (%v)", got.Name, err)
	}
	third := w.addServer("third", 1)
	save(third, func(s *server.Server) { s.Enabled = false })
	if got, err := pick(); !sameError(err, ports.ErrNoRow) {
		w.Errorf("with only a disabled server empty %q was picked (%v)", got.Name, err)
	}
}

func accountsOfServer(w *world) {
	second := w.addServer("second", 3)
	_, theirs := w.addAccount("bob@example.com")
	as := func(status database.Status, of id.AccountID, on id.ServerID) func(*database.Record) {
		return func(r *database.Record) { r.Status, r.AccountID, r.ServerID = status, of, on }
	}
	here := []database.Record{
		w.addDatabase("shop", as(database.Active, w.account.ID, second.ID)),
		w.addDatabase("blog", as(database.Stopped, theirs.ID, second.ID)),
	}
	w.addDatabase("toys", as(database.Creating, theirs.ID, second.ID))
	w.addDatabase("news", as(database.Active, theirs.ID, w.server.ID))
	slices.SortFunc(here, func(a, b database.Record) int { return cmp.Compare(a.ID, b.ID) })
	w.view(func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Servers().DatabaseAccounts(ctx, second.ID)
		var want []ports.DatabaseAccount
		for _, r := range here {
			want = append(want, ports.DatabaseAccount{DatabaseID: r.ID, AccountID: r.AccountID})
		}
		w.equal("the databases", list, want)
		return err
	})
}
