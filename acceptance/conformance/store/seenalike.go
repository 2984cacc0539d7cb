package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/ports"
)

// sights are two accounts with databases and previews, and every kind of key that may look at them.
type sights struct {
	*world
	accounts   []account.Account
	users      []id.UserID
	namespaces []id.NamespaceID
	keys       []account.Key
	sessions   []person.Session
	databases  []database.Record
}

// seenAlike draws who looks, and what is stored of the databases, the members and the accounts. A database that is read by its ID
// is seen, with the same record, exactly where the list has it: one rule is in the core, and the other one is SQL.
func seenAlike(w *world) {
	s := newSights(w)
	rapid.Check(w.T, func(t *rapid.T) {
		s.draw(t)
		for range 2 {
			v := s.viewer(t)
			err := w.Store.View(w.Context(), func(ctx context.Context, tx ports.Tx) error { return s.compare(ctx, t, tx, v) })
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func newSights(w *world) *sights {
	bob, theirs := w.addAccount("bob@example.com")
	s := &sights{
		world: w, accounts: []account.Account{w.account, theirs}, users: []id.UserID{w.user.ID, bob.ID, ""},
		namespaces: []id.NamespaceID{""}, keys: []account.Key{{}, {ID: "00000000"}},
	}
	for _, a := range s.accounts {
		n := w.namespaceOf(a, "web")
		s.namespaces = append(s.namespaces, n.ID)
		s.keys = append(s.keys, w.addCIKey(n, 0, stored))
		name := fmt.Sprintf("db%d", len(s.databases))
		plain := w.addDatabase(name, func(r *database.Record) { r.AccountID = a.ID })
		ofCI := w.addDatabase(name+"-ci", func(r *database.Record) { r.AccountID = a.ID })
		w.update(writing(ports.Tx.Previews, ports.Previews.Add, w.previewOf(ofCI.ID, n, "main", 1)))
		ofCI.NamespaceID = n.ID
		s.databases = append(s.databases, plain, ofCI)
	}
	first, last := s.databases[0], s.databases[len(s.databases)-1]
	for _, a := range s.accounts {
		s.keys = append(s.keys, w.addKey(account.FullAccount, a), w.addKey(account.SelectedDatabases, a),
			w.addKey(account.SelectedDatabases, a, first.ID, last.ID), s.revoked(w.addKey(account.FullAccount, a)),
			s.revoked(w.addKey(account.SelectedDatabases, a, first.ID, last.ID)))
	}
	for _, u := range s.users[:2] {
		s.sessions = append(s.sessions, w.addSession(u, 0), w.addSession(u, 0, endedSession(1)), w.session(u, 0))
	}
	return s
}

func (s *sights) revoked(k account.Key) account.Key {
	k.RevokedAt = new(minutes(1))
	s.update(writing(ports.Tx.Keys, ports.Keys.Revoke, k))
	return k
}

// draw gives the databases their statuses, the member a role and the accounts their plans, and suspends some.
func (s *sights) draw(t *rapid.T) {
	err := s.Store.Update(s.Context(), func(ctx context.Context, tx ports.Tx) error {
		for i := range s.accounts {
			s.accounts[i].Plan = rapid.SampledFrom(account.Plans).Draw(t, "plan")
			s.accounts[i].Suspension = rapid.SampledFrom([]account.Suspension{{}, unpaid()}).Draw(t, "suspension")
			if err := tx.Accounts().Save(ctx, s.accounts[i]); err != nil {
				return err
			}
		}
		for i := range s.databases {
			s.databases[i].Status = rapid.SampledFrom(database.Statuses).Draw(t, "status")
			if err := tx.Databases().Save(ctx, s.databases[i]); err != nil {
				return err
			}
		}
		guest := member.Membership{
			ID: newID[id.MembershipID](), DatabaseID: s.databases[0].ID, UserID: s.users[1], CreatedAt: epoch,
		}
		guest.Role = rapid.SampledFrom([]account.Standing{account.Admin, account.Developer, account.Viewer}).Draw(t, "role")
		return tx.Members().Set(ctx, guest)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// viewer is a person, who holds one of the keys, or anybody: one whose account, user, key and scope do not belong together.
func (s *sights) viewer(t *rapid.T) database.Viewer {
	if rapid.Bool().Draw(t, "person") {
		in := rapid.SampledFrom(s.sessions).Draw(t, "session")
		return database.Viewer{
			AccountID: rapid.SampledFrom(s.accounts).Draw(t, "account").ID, UserID: in.UserID, SessionID: in.ID,
			Deleted: rapid.Bool().Draw(t, "deleted"),
		}
	}
	key := rapid.SampledFrom(s.keys).Draw(t, "key")
	v := database.Viewer{
		AccountID: key.AccountID, UserID: key.UserID, KeyID: key.ID, Scope: key.Scope, NamespaceID: key.NamespaceID,
		Deleted: rapid.Bool().Draw(t, "deleted"),
	}
	if key.AccountID == "" || rapid.Bool().Draw(t, "anybody") {
		v.AccountID = rapid.SampledFrom(s.accounts).Draw(t, "account").ID
		v.UserID = rapid.SampledFrom(s.users).Draw(t, "user")
		v.Scope = rapid.SampledFrom([]account.Scope{account.FullAccount, account.SelectedDatabases}).Draw(t, "scope")
		v.NamespaceID = rapid.SampledFrom(s.namespaces).Draw(t, "namespace")
	}
	return v
}

func (s *sights) compare(ctx context.Context, t *rapid.T, tx ports.Tx, v database.Viewer) error {
	list, err := tx.Databases().Visible(ctx, v, database.Listing{}, ports.Page{})
	if err != nil {
		return err
	}
	listed := map[id.DatabaseID]database.Listed{}
	for _, r := range list {
		listed[r.ID] = r
	}
	together, err := s.together(ctx, tx, v)
	if err != nil {
		return err
	}
	for _, r := range s.databases {
		one, standing, err := access.See(ctx, tx, v, r.ID)
		if served := err == nil || sameError(err, ports.ErrNoRow); served != s.served(v, r) && one.ID != "" {
			t.Errorf("%+v, of %s: %v", v, r.Name, err)
		}
		if fault.Has(err, fault.AccountSuspended) { // it sees the database all the same
			err = nil
		}
		if together[r.ID] != standing {
			t.Errorf("%+v is to %s, read with others, %q, and by its ID %q", v, r.Name, together[r.ID], standing)
		}
		shown, visible := listed[r.ID]
		switch {
		case err != nil && !sameError(err, ports.ErrNoRow):
			return err
		case visible != (err == nil):
			t.Errorf("%+v: %s, which is %s, is listed: %t; read by its ID: %v", v, r.Name, r.Status, visible, err)
		case visible && (!cmp.Equal(database.Listed{Record: one, Standing: standing}, shown) || standing == ""):
			t.Errorf("%+v reads %+v as %q, and is shown %+v", v, one, standing, shown)
		}
	}
	return nil
}

// served reports whether neither the viewer's account nor that of a database is suspended. The service itself is always served.
func (s *sights) served(v database.Viewer, r database.Record) bool {
	return v.KeyID == "" && !v.IsPerson() || !slices.ContainsFunc(s.accounts, func(a account.Account) bool {
		return a.Suspended() && (a.ID == v.AccountID || a.ID == r.AccountID)
	})
}

// unpaid is a suspension.
func unpaid() account.Suspension { return account.Suspension{}.Suspend("unpaid", minutes(7)) }

// together is what a viewer is to each database that it sees, where all are read at once.
func (s *sights) together(ctx context.Context, tx ports.Tx, v database.Viewer) (seen, error) {
	list := []id.DatabaseID{newID[id.DatabaseID]()}
	for _, r := range s.databases {
		list = append(list, r.ID)
	}
	all, err := tx.Databases().AllTied(ctx, v, list)
	found := seen{}
	for _, one := range all {
		if standing, sees := v.StandingOn(one.Record, one.Ties); sees {
			found[one.ID] = standing
		}
	}
	return found, err
}
