package store

import (
	"context"
	"testing"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/ports"
)

// Members is the suite of ports.Members.
func Members(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a membership is set once and changed", membershipChanges},
		{"members are listed oldest first, each of its own database", membersAreListed},
		{"a removed member's keys are unbound from that database alone", removalUnbinds},
	})
}

func (w *world) addMember(db id.DatabaseID, u account.User, role account.Standing, minute int) member.Member {
	w.Helper()
	m := member.Membership{
		ID: newID[id.MembershipID](), DatabaseID: db, UserID: u.ID, Role: role, CreatedAt: minutes(minute),
	}
	w.update(writing(ports.Tx.Members, ports.Members.Set, m))
	return member.Member{Membership: m, Email: u.Email, Name: u.Name}
}

// memberKey is a key of a user, bound to databases, and the user as the owner of the key.
func (w *world) memberKey(of account.Account, databases ...id.DatabaseID) database.Viewer {
	w.Helper()
	key := w.addKey(account.SelectedDatabases, of, databases...)
	return database.Viewer{AccountID: of.ID, UserID: of.OwnerID, KeyID: key.ID, Scope: account.SelectedDatabases}
}

func membershipChanges(w *world) {
	r := w.addDatabase("shop")
	bob, theirs := w.addAccount("bob@example.com")
	viewer := w.memberKey(theirs, r.ID)
	first := w.addMember(r.ID, bob, account.Viewer, 1)
	for _, role := range []account.Standing{account.Viewer, account.Admin, account.Developer} {
		w.addMember(r.ID, bob, role, 2)
		first.Role = role
		w.equal("by ID", read2(w, ports.Tx.Members, ports.Members.Get, r.ID, first.ID), first)
		w.equal("by user", read2(w, ports.Tx.Members, ports.Members.OfUser, r.ID, bob.ID), first)
		w.view(func(ctx context.Context, tx ports.Tx) error {
			_, standing, err := access.See(ctx, tx, viewer, r.ID)
			w.equal("the member's standing", standing, role)
			return err
		})
	}
	nowhere := member.Membership{ID: newID[id.MembershipID](), UserID: bob.ID, Role: account.Admin, CreatedAt: epoch}
	nobody := nowhere
	nowhere.DatabaseID = newID[id.DatabaseID]()
	nobody.DatabaseID, nobody.UserID = r.ID, newID[id.UserID]()
	for what, m := range map[string]member.Membership{"a member of no database": nowhere, "a member who is nobody": nobody} {
		w.unknown(what, writing(ports.Tx.Members, ports.Members.Set, m))
	}
}

func membersAreListed(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	bob, _ := w.addAccount("bob@example.com")
	eve, _ := w.addAccount("eve@example.com")
	w.equal("of a new database", len(read(w, ports.Tx.Members, ports.Members.List, r.ID)), 0)
	second, first := w.addMember(r.ID, bob, account.Viewer, 2), w.addMember(r.ID, eve, account.Admin, 1)
	theirs := w.addMember(other.ID, bob, account.Admin, 1)
	w.equal("the list", read(w, ports.Tx.Members, ports.Members.List, r.ID), []member.Member{first, second})
	w.equal("the other list", read(w, ports.Tx.Members, ports.Members.List, other.ID), []member.Member{theirs})
	w.missing("through another database", reading2(ports.Tx.Members, ports.Members.Get, r.ID, theirs.ID))
	w.missing("of somebody else", reading2(ports.Tx.Members, ports.Members.OfUser, other.ID, eve.ID))
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, other.ID))
	w.missing("of a removed database", reading2(ports.Tx.Members, ports.Members.Get, other.ID, theirs.ID))
}

func removalUnbinds(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	bob, bobs := w.addAccount("bob@example.com")
	eve, eves := w.addAccount("eve@example.com")
	member := w.addMember(r.ID, bob, account.Admin, 1)
	w.addMember(other.ID, bob, account.Viewer, 1)
	w.addMember(r.ID, eve, account.Viewer, 1)
	one, two, hers := w.memberKey(bobs, r.ID, other.ID), w.memberKey(bobs, r.ID), w.memberKey(eves, r.ID)
	removal := writing(ports.Tx.Members, ports.Members.Remove, member.Membership)
	sees := func(what string, v database.Viewer, want int) {
		w.Helper()
		w.equal("databases that are seen by "+what, len(onePage(w, ports.Page{}, listed(v, database.Listing{}))), want)
	}
	elsewhere := member.Membership
	elsewhere.DatabaseID = other.ID
	w.unknown("through another database", writing(ports.Tx.Members, ports.Members.Remove, elsewhere))
	sees("one key", one, 2)
	w.update(removal)
	sees("one key, afterwards", one, 1)
	sees("the other key", two, 0)
	sees("another member's key", hers, 1)
	w.unknown("once more", removal)
	w.addMember(r.ID, bob, account.Admin, 2)
	sees("one key of somebody who is a member again", one, 1)
	sees("the other key, too", two, 0)
}
