package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Invitations is the suite of ports.Invitations.
func Invitations(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"an invitation comes back as it was stored", invitationComesBack},
		{"the list has what is open or expired, oldest first", invitationsAreListed},
		{"an address has one invitation, and a token one", invitationsAreUnique},
		{"what is overdue is found, and what ended long ago forgotten", invitationsEnd},
	})
}

// invitation to a database, with a token of its own, that is not stored yet.
func (w *world) invitation(db id.DatabaseID, email string) member.Invitation {
	i := newID[id.InvitationID]()
	return member.Invitation{ID: i, AccountID: w.account.ID, DatabaseID: db, Email: email, Role: account.Viewer}.
		Opened(token.Of(string(i)), epoch)
}

func (w *world) addInvitation(db id.DatabaseID, email string, change ...func(*member.Invitation)) member.Invitation {
	w.Helper()
	i := changed(w.invitation(db, email), change)
	w.update(writing(ports.Tx.Invitations, ports.Invitations.Add, i))
	return i
}

// endedAs has an invitation end at a minute.
func endedAs(as member.Status, minute int) func(*member.Invitation) {
	return func(i *member.Invitation) { i.Status, i.EndedAt = as, new(minutes(minute)) }
}

func invitationComesBack(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	i := w.addInvitation(r.ID, "bob@example.com")
	w.equal("as added", read2(w, ports.Tx.Invitations, ports.Invitations.Get, r.ID, i.ID), i)
	w.missing("through another database", reading2(ports.Tx.Invitations, ports.Invitations.Get, other.ID, i.ID))
	old := token.Of(string(i.ID))
	w.equal("by its token", read(w, ports.Tx.Invitations, ports.Invitations.ByToken, old), i)
	fresh := token.Of("fresh")
	resent := must(i.Resent(account.Admin, fresh, minutes(3)))(w)
	w.update(writing(ports.Tx.Invitations, ports.Invitations.Save, resent))
	w.equal("by its new token", read(w, ports.Tx.Invitations, ports.Invitations.ByToken, fresh), resent)
	w.missing("by its old token", reading(ports.Tx.Invitations, ports.Invitations.ByToken, old))
	accepted := must(resent.Accepted(minutes(4)))(w)
	w.update(writing(ports.Tx.Invitations, ports.Invitations.Save, accepted))
	w.equal("as saved", read2(w, ports.Tx.Invitations, ports.Invitations.Get, r.ID, i.ID), accepted)

	w.unknown("saving an unknown one",
		writing(ports.Tx.Invitations, ports.Invitations.Save, w.invitation(r.ID, "eve@example.com")))
	w.unknown("an invitation to no database",
		writing(ports.Tx.Invitations, ports.Invitations.Add, w.invitation(newID[id.DatabaseID](), "eve@example.com")))
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.missing("of a removed database", reading(ports.Tx.Invitations, ports.Invitations.ByToken, fresh))
}

func invitationsAreListed(w *world) {
	r, other := w.addDatabase("shop"), w.addDatabase("other")
	created := func(minute int) func(*member.Invitation) {
		return func(i *member.Invitation) { i.CreatedAt = minutes(minute) }
	}
	second := w.addInvitation(r.ID, "b@example.com", endedAs(member.Expired, 9), created(2))
	first := w.addInvitation(r.ID, "a@example.com", created(1))
	w.addInvitation(r.ID, "c@example.com", endedAs(member.Accepted, 3))
	w.addInvitation(r.ID, "d@example.com", endedAs(member.Revoked, 3))
	theirs := w.addInvitation(other.ID, "a@example.com")
	w.equal("the list", read(w, ports.Tx.Invitations, ports.Invitations.List, r.ID), []member.Invitation{first, second})
	w.equal("the other list", read(w, ports.Tx.Invitations, ports.Invitations.List, other.ID), []member.Invitation{theirs})
}

func invitationsAreUnique(w *world) {
	r := w.addDatabase("shop")
	open := w.addInvitation(r.ID, "a@example.com")
	w.addInvitation(r.ID, "b@example.com", endedAs(member.Expired, 1))
	w.addInvitation(r.ID, "c@example.com", endedAs(member.Accepted, 1))
	w.addInvitation(r.ID, "c@example.com", endedAs(member.Revoked, 2))
	w.addInvitation(r.ID, "c@example.com")
	same := w.invitation(r.ID, "d@example.com")
	same.TokenHash = open.TokenHash
	for what, i := range map[string]member.Invitation{
		"an open one beside an open one":     w.invitation(r.ID, "a@example.com"),
		"an open one beside an expired one":  w.invitation(r.ID, "b@example.com"),
		"another one with the token of this": same,
	} {
		w.fails(fmt.Sprintf("%s is stored", what), writing(ports.Tx.Invitations, ports.Invitations.Add, i))
	}
}

func invitationsEnd(w *world) {
	r := w.addDatabase("shop")
	expiring := func(minute int) func(*member.Invitation) {
		return func(i *member.Invitation) { i.ExpiresAt = minutes(minute) }
	}
	late := w.addInvitation(r.ID, "a@example.com", expiring(2))
	early := w.addInvitation(r.ID, "b@example.com", expiring(1))
	w.addInvitation(r.ID, "c@example.com", expiring(3))
	expired := w.addInvitation(r.ID, "d@example.com", expiring(1), endedAs(member.Expired, 1))
	overdue := func(now time.Time, limit int) []member.Invitation {
		return read2(w, ports.Tx.Invitations, ports.Invitations.Overdue, now, limit)
	}
	w.equal("overdue after two minutes", overdue(minutes(2), 10), []member.Invitation{early, late})
	w.equal("the first of them", overdue(minutes(2), 1), []member.Invitation{early})

	accepted := w.addInvitation(r.ID, "e@example.com", endedAs(member.Accepted, 2))
	revoked := w.addInvitation(r.ID, "f@example.com", endedAs(member.Revoked, 5))
	for _, step := range []struct{ before, limit, left int }{{1, 10, 3}, {3, 1, 2}, {3, 10, 1}, {5, 10, 1}, {6, 10, 0}} {
		w.update(writing2(ports.Tx.Invitations, ports.Invitations.Forget, minutes(step.before), step.limit))
		left := 0
		for _, i := range []member.Invitation{expired, accepted, revoked} {
			if w.Store.View(w.Context(), reading2(ports.Tx.Invitations, ports.Invitations.Get, r.ID, i.ID)) == nil {
				left++
			}
		}
		w.equal(fmt.Sprintf("left after forgetting %+v", step), left, step.left)
	}
	w.equal("still overdue", overdue(minutes(2), 10), []member.Invitation{early, late})
}
