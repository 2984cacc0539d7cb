package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// Visibility is the suite of Tied and Visible: which databases exist for which key.
func Visibility(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"each viewer sees exactly its databases", viewersSee},
		{"one database and the list are seen alike", seenAlike},
		{"a listing has what it says, in pages and in its order", listingsHold},
		{"a foreign cursor is refused", cursorIsChecked},
		{"an ID that is none finds nothing", malformedFindsNothing},
	})
}

// seen is what a viewer is to each database that it sees.
type seen map[id.DatabaseID]account.Standing

// wantSeen holds access.See and Visible to the same answer.
func (w *world) wantSeen(who string, v database.Viewer, every []database.Record, want seen) {
	w.Helper()
	w.view(func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Databases().Visible(ctx, v, database.Listing{}, ports.Page{})
		if err != nil {
			return err
		}
		listed := map[id.DatabaseID]bool{}
		for _, r := range list {
			listed[r.ID] = true
		}
		for _, r := range every {
			got, standing, err := access.See(ctx, tx, v, r.ID)
			expected, visible := want[r.ID]
			switch {
			case !visible && !sameError(err, ports.ErrNoRow):
				w.Errorf("%s reaches %s: %v", who, r.Name, err)
			case visible && err != nil:
				w.Errorf("%s does not reach %s: %v", who, r.Name, err)
			case visible:
				w.equal(who+" reads "+r.Name, got, r)
				w.equal(who+" stands to "+r.Name, standing, expected)
			}
			w.equal(who+" is shown "+r.Name, listed[r.ID], visible)
		}
		w.equal("length of the list of "+who, len(list), len(want))
		return nil
	})
}

func viewersSee(w *world) {
	bob, theirs := w.addAccount("bob@example.com")
	of := func(a account.Account) func(*database.Record) { return func(r *database.Record) { r.AccountID = a.ID } }
	mine, unbound := w.addDatabase("mine"), w.addDatabase("unbound")
	shared, foreign := w.addDatabase("shared", of(theirs)), w.addDatabase("foreign", of(theirs))
	every := []database.Record{mine, unbound, shared, foreign}

	// Ada is a member of Bob's shared database, and her key is bound to it and, wrongly, to his other one.
	w.addMember(shared.ID, w.user, account.Developer, 0)
	full := w.addKey(account.FullAccount, w.account)
	selected := w.addKey(account.SelectedDatabases, w.account, mine.ID, shared.ID, foreign.ID)
	empty := w.addKey(account.SelectedDatabases, w.account)

	viewer := func(k account.Key) database.Viewer {
		return database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: k.ID, Scope: k.Scope}
	}
	w.wantSeen("the full-account key", viewer(full), every, seen{mine.ID: account.Owner, unbound.ID: account.Owner})
	w.wantSeen("the selected-database key", viewer(selected), every,
		seen{mine.ID: account.Owner, shared.ID: account.Developer})
	w.wantSeen("the key bound to nothing", viewer(empty), every, seen{})
	other := database.Viewer{AccountID: theirs.ID, UserID: bob.ID, Scope: account.FullAccount}
	w.wantSeen("the other account", other, every, seen{shared.ID: account.Owner, foreign.ID: account.Owner})
}

func cursorIsChecked(w *world) {
	r := w.addDatabase("shop")
	viewer := database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, Scope: account.FullAccount}
	databases := func(of database.Listing, after ports.Position) transaction {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Databases().Visible(ctx, viewer, of, ports.Page{After: &after})
			return err
		}
	}
	for _, bad := range []ports.Position{
		at(epoch, "x"), at(epoch, "' OR true --"), at(epoch, "20260105_093000.sql.gz"), at(epoch, "ABCDEFGH"),
		{Key: "shop", ID: string(r.ID)},
	} {
		p := ports.Page{After: &bad}
		for list, read := range map[string]transaction{
			"databases": databases(database.Listing{}, bad),
			"operations": func(ctx context.Context, tx ports.Tx) error {
				_, err := tx.Operations().List(ctx, r.ID, claimed, p)
				return err
			},
			"audit":     reading2(ports.Tx.Audit, ports.Audit.List, r.ID, p),
			"endpoints": reading2(ports.Tx.Webhooks, ports.Webhooks.List, w.account.ID, p),
			"attempts":  reading2(ports.Tx.Deliveries, ports.Deliveries.Attempts, newID[id.WebhookID](), p),
		} {
			if err := w.Store.View(w.Context(), read); !sameError(err, invalid("cursor")) {
				w.Errorf("%s after %+v: %v", list, bad, err)
			}
		}
	}
	backups := func(after ports.Position) transaction {
		return reading2(ports.Tx.Backups, ports.Backups.List, r.ID, ports.Page{After: &after})
	}
	names, sizes := database.Listing{By: database.ByName}, database.Listing{By: database.BySize}
	for what, read := range map[string]transaction{
		"backups after the ID of a database": backups(at(epoch, r.ID)),
		"backups after a key":                backups(ports.Position{Key: "shop", ID: string(backup.FilenameAt(epoch))}),
		"names after a time":                 databases(names, at(epoch, r.ID)),
		"sizes after a name":                 databases(sizes, ports.Position{Key: "shop", ID: string(r.ID)}),
		"sizes after no ID":                  databases(sizes, ports.Position{Key: "0000000000000000007"}),
	} {
		if err := w.Store.View(w.Context(), read); !sameError(err, invalid("cursor")) {
			w.Errorf("%s: %v", what, err)
		}
	}
}

func malformedFindsNothing(w *world) {
	w.missing("a database", reach(w, "no-uuid"))
	w.missing("a record", reading(ports.Tx.Databases, ports.Databases.Get, "no-uuid"))
	w.missing("a record of none", reading(ports.Tx.Databases, ports.Databases.Get, newID[id.DatabaseID]()))
	w.missing("an operation", reading(ports.Tx.Operations, ports.Operations.Get, "no-uuid"))
	w.missing("a server", reading(ports.Tx.Servers, ports.Servers.Get, "no-uuid"))
}
