package controlplane_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

func TestTheOwnerIsNoMember(t *testing.T) {
	w := newShared(t)
	for _, email := range []string{"owner@example.org", "Owner@EXAMPLE.org"} {
		refused(t, errOf(w.Members.Add(w.ctx, w.db, email, account.Admin)), fault.MemberConflict)
	}
	w.peopleAre()
	owner := must(w.Members.List(w.ctx, w.db))(t).Owner
	if owner.ID != w.account.OwnerID || owner.Email != "owner@example.org" {
		t.Errorf("the owner is %+v", owner)
	}
}

func TestANewPersonAccepts(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Developer)
	w.peopleAre("bob@example.org developer?")
	joined := w.joins(token)
	w.peopleAre("bob@example.org developer")
	w.nobody(token)
	ok(t, w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		user, err := tx.Accounts().UserByEmail(ctx, "bob@example.org")
		if err != nil || user.ID != joined.UserID || user.Name != "Bob" || !w.hashing.Matches(user.PasswordHash, password) {
			t.Errorf("the user is %+v, %v", user, err)
		}
		return err
	}))
	err := w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Accounts().Add(ctx, account.Account{ID: "a", OwnerID: joined.UserID, Plan: account.Free})
	})
	refused(t, err, fault.ValidationError) // the person owns an account already
	for _, details := range w.details() {
		for _, v := range details {
			if strings.Contains(v, token) || strings.Contains(v, password) {
				t.Errorf("a secret stands in the log: %v", details)
			}
		}
	}
}

// What a token is worth nothing for is found before any password is hashed, and every answer is the same.
func TestTokensThatAreWorthNothing(t *testing.T) {
	w := newShared(t)
	old := w.invited("bob@example.org", account.Viewer)
	current := w.invited("bob@example.org", account.Admin) // as by resend
	w.clock.Advance(time.Second)
	withdrawn := w.invited("eve@example.org", account.Viewer)
	list := must(w.Members.Invitations(w.ctx, w.db))(t)
	equal(t, "invitations", len(list), 2)
	ok(t, w.Members.Revoke(w.ctx, w.db, list[1].ID))
	refused(t, w.Members.Revoke(w.ctx, w.db, list[1].ID), fault.InvitationNotFound)
	for _, text := range []string{"", "x", strings.Repeat("0", token.Characters), current + "0", old, withdrawn} {
		w.nobody(text)
	}
	w.clock.Advance(member.Validity)
	w.nobody(current)
	equal(t, "passwords hashed", w.hashing.times.Load(), int64(0))
	equal(t, "the status", must(w.Members.Invitations(w.ctx, w.db))(t)[0].Status, member.Expired)
	resent := must(w.Members.Resend(w.ctx, w.db, list[0].ID))(t)
	equal(t, "the ID", resent.ID, list[0].ID)
	equal(t, "the role", w.joins(w.mailed("bob@example.org")[2]).Role, account.Admin)
	refused(t, errOf(w.Members.Resend(w.ctx, w.db, list[0].ID)), fault.InvitationNotFound)
}

func TestWhatANewPersonHasToSay(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Viewer)
	for field, a := range map[string]members.Acceptance{
		"name: is":         {Token: token, Password: new(password)},
		"password: is":     {Token: token, Name: new("Bob")},
		"name: must":       {Token: token, Name: new("a\nb"), Password: new(password)},
		"password: must":   {Token: token, Name: new("Bob"), Password: new("short")},
		"password: must h": {Token: token, Name: new("Bob"), Password: new(strings.Repeat("x", 201))},
	} {
		_, err := w.Members.Accept(w.ctx, a)
		if !fault.Has(err, fault.ValidationError) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	w.joins(token)
}

// Somebody is added whose address is invited: the token must not give the role of then.
func TestAddingSomebodyWhoIsInvited(t *testing.T) {
	w := newShared(t)
	w.adds("bob@example.org", account.Admin)
	w.newAccount("bob@example.org", account.Pro)
	w.adds("bob@example.org", account.Viewer)
	w.peopleAre("bob@example.org viewer")
	equal(t, "mails", len(w.mailed("bob@example.org")), 0) // withdrawn before it was sent
}

func TestARemovedMembersKeysLoseTheDatabase(t *testing.T) {
	w := newShared(t)
	bob, _, _ := w.newAccount("bob@example.org", account.Pro)
	added := w.adds("bob@example.org", account.Admin)
	key := w.keyOf(bob.ID)
	ok(t, w.reaches(key, account.Configure))
	must(w.Members.SetRole(w.ctx, w.db, added.Member.ID, account.Viewer))(t)
	refused(t, w.reaches(key, account.Configure), fault.Forbidden)
	ok(t, w.Members.Remove(w.ctx, w.db, added.Member.ID))
	refused(t, w.reaches(key, account.See), fault.DatabaseNotFound)
	refused(t, w.Members.Remove(w.ctx, w.db, added.Member.ID), fault.MemberNotFound)
	refused(t, errOf(w.Members.SetRole(w.ctx, w.db, added.Member.ID, account.Viewer)), fault.MemberNotFound)
	w.adds("bob@example.org", account.Admin)
	refused(t, w.reaches(key, account.See), fault.DatabaseNotFound) // a later membership opens nothing by itself
}

// An owner who may not use the API any more has the operator remove somebody.
func TestAnOperatorRemovesAnAddress(t *testing.T) {
	w := newShared(t)
	bob, _, _ := w.newAccount("bob@example.org", account.Pro)
	w.adds("bob@example.org", account.Admin)
	key, token := w.keyOf(bob.ID), w.invited("carol@example.org", account.Viewer)
	must(w.Operator.ChangeAccount(w.ctx, w.account.ID, func(a *account.Account) { a.Plan = account.Free }))(t)
	of := w.db.Record().ID
	w.clock.Advance(time.Second)
	equal(t, "bob", must(w.Operator.RemovePerson(w.ctx, of, "BOB@example.org"))(t), members.Removed{Memberships: 1})
	refused(t, w.reaches(key, account.See), fault.DatabaseNotFound)
	w.clock.Advance(time.Second)
	equal(t, "carol", must(w.Operator.RemovePerson(w.ctx, of, "carol@example.org"))(t), members.Removed{Invitations: 1})
	w.nobody(token)
	refused(t, errOf(w.Operator.RemovePerson(w.ctx, of, "carol@example.org")), fault.MemberNotFound)
	refused(t, errOf(w.Operator.RemovePerson(w.ctx, "no database", "bob@example.org")), fault.DatabaseNotFound)
	log := must(w.Operator.Audit(w.ctx, of, ports.Page{}))(t)
	for i, want := range []audit.Action{audit.InvitationRevoked, audit.MemberRemoved} {
		if got := log[i].What; got.Action != want || got.Actor != audit.Operator {
			t.Errorf("%s by %s, want %s by the operator", got.Action, got.Actor.Name, want)
		}
	}
}

func TestMembersAreForTheOwner(t *testing.T) {
	w := newShared(t)
	bob, _, _ := w.newAccount("bob@example.org", account.Pro)
	w.adds("bob@example.org", account.Admin)
	for code, key := range map[fault.Code]string{fault.Forbidden: w.keyOf(bob.ID), fault.KeyScopeDenied: w.keyOf(w.account.ID)} {
		r := must(w.Access.Reach(w.ctx, w.admit(key), w.db.Record().ID, account.See))(t)
		for _, err := range []error{
			errOf(w.Members.List(w.ctx, r)), errOf(w.Members.Invitations(w.ctx, r)),
			errOf(w.Members.Add(w.ctx, r, "eve@example.org", account.Admin)), errOf(w.Members.SetRole(w.ctx, r, "m", account.Admin)),
			w.Members.Remove(w.ctx, r, "m"), errOf(w.Members.Resend(w.ctx, r, "i")), w.Members.Revoke(w.ctx, r, "i"),
		} {
			refused(t, err, code)
		}
	}
	refused(t, errOf(w.Members.List(w.ctx, access.Reached{})), fault.DatabaseNotFound)
}

func TestFiftyOpenInvitations(t *testing.T) {
	w := newShared(t)
	for n := range member.MaxOpen {
		w.adds(fmt.Sprintf("%d@example.org", n), account.Viewer)
	}
	refused(t, errOf(w.Members.Add(w.ctx, w.db, "more@example.org", account.Viewer)), fault.MemberConflict)
	w.adds("7@example.org", account.Admin) // one that is open already
	w.clock.Advance(member.Validity)
	w.adds("more@example.org", account.Viewer)
	equal(t, "listed", len(w.people()), member.MaxOpen+1)
}

func TestMailsToOneAddressAreBounded(t *testing.T) {
	w := newShared(t)
	for range 5 {
		w.adds("bob@example.org", account.Viewer)
	}
	_, err := w.Members.Add(w.ctx, w.db, "Bob@example.org", account.Viewer)
	refused(t, err, fault.RateLimited)
	refused(t, errOf(w.Members.Resend(w.ctx, w.db, must(w.Members.Invitations(w.ctx, w.db))(t)[0].ID)), fault.RateLimited)
	if w.joins(w.mailed("bob@example.org")[0]).Role != account.Viewer { // the refused ones have not ended the last token
		t.Error("the role is another one")
	}
}

// Whoever adds an address learns whether it is a user's, so that is bounded, too.
func TestAddedAddressesAreBounded(t *testing.T) {
	w := newShared(t)
	w.newAccount("bob@example.org", account.Free)
	for range 100 {
		w.adds("bob@example.org", account.Viewer)
	}
	refused(t, errOf(w.Members.Add(w.ctx, w.db, "bob@example.org", account.Viewer)), fault.RateLimited)
	w.clock.Advance(time.Hour)
	w.adds("bob@example.org", account.Viewer)
}

// The round stores what time has done, and forgets what ended long ago.
func TestInvitationsExpire(t *testing.T) {
	w := newShared(t)
	unsent := w.adds("bob@example.org", account.Viewer).Invitation
	w.clock.Advance(member.Validity)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "mails", len(w.mailed("bob@example.org")), 0)
	log := w.activity(w.db.Record().ID)
	equal(t, "the last entry", log[len(log)-1], audit.InvitationExpired)
	stored := func() error {
		return w.store.View(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Invitations().Get(ctx, w.db.Record().ID, unsent.ID)
			return err
		})
	}
	w.clock.Advance(member.Kept)
	ok(t, w.Rounds.Once(w.ctx))
	ok(t, stored())
	w.clock.Advance(time.Hour)
	ok(t, w.Rounds.Once(w.ctx))
	if stored() == nil {
		t.Error("the invitation is kept for ever")
	}
	for _, details := range w.details() { // all that is left of somebody who never accepted
		if email, has := details["email"]; has && email != "b…@example.org" {
			t.Errorf("the address stands in the log: %v", details)
		}
	}
}

func TestADatabaseThatIsBeingDeletedTakesNobodyIn(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Viewer)
	set := func(s database.Status) {
		ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			r, err := tx.Databases().Lock(ctx, w.db.Record().ID)
			if err != nil {
				return err
			}
			r.Status = s
			return tx.Databases().Save(ctx, r)
		}))
	}
	set(database.Deleting)
	w.nobody(token)
	equal(t, "passwords hashed", w.hashing.times.Load(), int64(0))
	refused(t, errOf(w.Members.Add(w.ctx, w.db, "eve@example.org", account.Viewer)), fault.DatabaseStateConflict)
	set(database.Stopped)
	w.joins(token)
}

func TestWithoutMailsOrPasswords(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Viewer)
	bare := w.ports
	bare.Mailer, bare.Passwords = nil, nil
	cp := must(controlplane.New(bare, quick()))(t)
	refused(t, errOf(cp.Members.Add(w.ctx, w.db, "eve@example.org", account.Viewer)), fault.FeatureNotAvailable)
	refused(t, errOf(cp.Members.Accept(w.ctx, newcomer(token))), fault.FeatureNotAvailable)
	w.newAccount("eve@example.org", account.Free)
	must(cp.Members.Add(w.ctx, w.db, "eve@example.org", account.Viewer))(t)
}

// Of one account's invitations one password is hashed at a time, and two in all; who waits too long is told so.
func TestHashingIsBounded(t *testing.T) {
	w := newShared(t)
	var tokens []string
	for n := range 3 {
		tokens = append(tokens, w.invited(fmt.Sprintf("%d@example.org", n), account.Viewer))
	}
	w.hashing.gate = make(chan struct{})
	ended := make(chan error, len(tokens))
	for _, token := range tokens {
		go func() { ended <- errOf(w.Members.Accept(w.ctx, newcomer(token))) }()
	}
	for range 2 {
		select {
		case err := <-ended:
			refused(t, err, fault.RateLimited)
		case <-time.After(10 * time.Second):
			close(w.hashing.gate)
			t.Fatalf("%d passwords are being hashed", w.hashing.times.Load())
		}
	}
	equal(t, "passwords hashed", w.hashing.times.Load(), int64(1))
	close(w.hashing.gate)
	ok(t, <-ended)
}

// Many present one token at once: one password is hashed, and the others are told the same as always.
func TestManyWithOneTokenHashOnce(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Viewer)
	ended := make(chan error)
	const many = 8
	for range many {
		go func() { ended <- errOf(w.Members.Accept(w.ctx, newcomer(token))) }()
	}
	won := 0
	for range many {
		if err := <-ended; err == nil {
			won++
		} else {
			refused(t, err, fault.InvitationNotFound)
		}
	}
	equal(t, "acceptances", won, 1)
	equal(t, "passwords hashed", w.hashing.times.Load(), int64(1))
}

func TestAUserAcceptsWithoutAPassword(t *testing.T) {
	w := newShared(t)
	token := w.invited("bob@example.org", account.Viewer)
	bob, _, _ := w.newAccount("bob@example.org", account.Pro) // who became a user between
	joined := must(w.Members.Accept(w.ctx, members.Acceptance{Token: token}))(t)
	equal(t, "the member", joined.UserID, bob.OwnerID)
	equal(t, "passwords hashed", w.hashing.times.Load(), int64(0))
	w.peopleAre("bob@example.org viewer")
}
