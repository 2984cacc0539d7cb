package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/lease"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

// Mails is the suite of ports.Mails.
func Mails(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a mail comes back as it was stored", mailComesBack},
		{"a mail needs its account and database, and goes with the database", mailNeedsDatabase},
		{"only what can change of a mail is saved", mailIdentityStays},
		{"an invitation's mails are withdrawn", withdrawIsTheCores},
		{"a lost lease saves nothing of a mail", lostLeaseSavesNoMail},
		{"mails are counted by account and address", recentMailsAreCounted},
		{"a mail's claim leaves what the core says", mailClaimIsTheCores},
		{"of an account the mail that has been due longest is claimed first", longestDueMailFirst},
		{"accounts take turns, and none has more mails held than it may", accountsTakeTurns},
		{"many dispatchers never claim one mail twice, nor exceed the cap", noMailIsClaimedTwice},
		{"old mails are forgotten", oldMailsAreForgotten},
		{"the backlog is what was not sent", mailBacklogCounts},
		{"a mail wakes dispatchers", mailWakes},
	})
}

// mail is an invitation to a database that was added at now.
func (w *world) mail(r database.Record, now time.Time) mail.Mail {
	m := newID[id.MailID]()
	return mail.New(m, mail.Letter{
		Kind:         mail.ToInvite,
		InvitationID: newID[id.InvitationID](), AccountID: r.AccountID, DatabaseID: r.ID, Recipient: "bob@example.com",
		Inviter: "Ada, \"the\" ünicode", Database: r.DisplayName, Role: account.Viewer, ExpiresAt: minutes(10_000),
	}, []byte{0, 1, 255}, now)
}

// mailToPerson is one that is about no database.
func mailToPerson(of id.AccountID, k mail.Kind, now time.Time) mail.Mail {
	return mail.New(newID[id.MailID](), mail.Letter{
		Kind: k, AccountID: of, Recipient: "bob@example.com", ExpiresAt: minutes(10_000), Note: "Something has changed.",
	}, []byte{0}, now)
}

func addMail(m mail.Mail) transaction { return writing(ports.Tx.Mails, ports.Mails.Add, m) }

func (w *world) addMail(r database.Record, now time.Time) mail.Mail {
	w.Helper()
	m := w.mail(r, now)
	w.update(addMail(m))
	return m
}

func saveMail(m mail.Mail) transaction { return writing(ports.Tx.Mails, ports.Mails.SaveLeased, m) }

func getMail(w *world, of id.MailID) mail.Mail {
	w.Helper()
	return readLocked(w, ports.Tx.Mails, ports.Mails.Lock, of)
}

func claimMailAt(ctx context.Context, s ports.Store, owner string, now time.Time, perAccount int) (mail.Mail, error) {
	return take(ctx, s, func(ctx context.Context, tx ports.Tx) (mail.Mail, error) {
		return tx.Mails().ClaimNext(ctx, owner, now, hold, perAccount)
	})
}

func (w *world) mustClaimMail(now time.Time, perAccount int) mail.Mail {
	w.Helper()
	m, err := claimMailAt(w.Context(), w.Store, "dispatcher-1", now, perAccount)
	if err != nil {
		w.Fatalf("claiming at %v: %v", now, err)
	}
	return m
}

func (w *world) noMailDue(what string, now time.Time, perAccount int) {
	w.Helper()
	if m, err := claimMailAt(w.Context(), w.Store, "dispatcher-0", now, perAccount); !errors.Is(err, ports.ErrNoRow) {
		w.Errorf("%s: claimed %s (%v)", what, m.ID, err)
	}
}

// settled ends an attempt as the core says.
func (w *world) settled(m mail.Mail, o mail.Outcome, now time.Time) mail.Mail {
	w.Helper()
	return must(m.Settle(o, now))(w)
}

func mailComesBack(w *world) {
	r := w.addDatabase("shop")
	first := w.addMail(r, epoch)
	held := w.mail(r, minutes(1)).Claimed("dispatcher, {1} \"x\"", minutes(3), hold)
	held.Attempts, held.NotBefore = 7, minutes(2)
	sent := w.settled(held, mail.Outcome{}, minutes(4))
	sent.ID = newID[id.MailID]()
	w.update(addMail(held))
	w.update(addMail(sent))
	reset, notice := mailToPerson(r.AccountID, mail.ToReset, epoch), mailToPerson(r.AccountID, mail.ToTell, epoch)
	w.update(addMail(reset))
	w.update(addMail(notice))
	for _, want := range []mail.Mail{first, held, sent, reset, notice} {
		w.equal("as added", getMail(w, want.ID), want)
	}
	claimed := map[id.MailID]bool{}
	for range 4 { // all but the one that was sent: whatever a mail is about, it is claimed as it was added
		m := w.mustClaimMail(minutes(9), 4)
		m.Lease, m.Status, m.Attempts = lease.Lease{}, "", 0
		want := getMail(w, m.ID)
		want.Lease, want.Status, want.Attempts = lease.Lease{}, "", 0
		w.equal("as claimed", m, want)
		claimed[m.ID] = true
	}
	w.equal("the mails that were claimed", claimed, map[id.MailID]bool{
		first.ID: true, held.ID: true, reset.ID: true, notice.ID: true,
	})
	w.unknown("locking an unknown mail", reading(ports.Tx.Mails, ports.Mails.Lock, newID[id.MailID]()))
	w.fails("two mails have one ID", addMail(first))
}

func mailNeedsDatabase(w *world) {
	r := w.addDatabase("shop")
	lost := w.mail(w.record("nowhere"), epoch)
	w.unknown("a mail about no database", addMail(lost))
	lost = w.mail(r, epoch)
	lost.AccountID = newID[id.AccountID]()
	w.unknown("a mail of no account", addMail(lost))
	m := w.addMail(r, epoch)
	w.update(writing(ports.Tx.Databases, ports.Databases.Remove, r.ID))
	w.unknown("the mail of a removed database", reading(ports.Tx.Mails, ports.Mails.Lock, m.ID))
	w.refused("its outcome", ports.ErrLeaseLost, saveMail(m))
}

func mailIdentityStays(w *world) {
	r := w.addDatabase("shop")
	m := w.addMail(r, epoch)
	want := w.settled(w.mustClaimMail(minutes(1), 1), mail.Outcome{Error: "try later"}, minutes(2))
	changed := want
	changed.Letter = w.mail(w.addDatabase("other"), epoch).Letter
	changed.Recipient, changed.CreatedAt = "eve@example.com", minutes(9)
	w.update(saveMail(changed))
	w.equal("due again", getMail(w, m.ID), want)
	for _, o := range []mail.Outcome{{}, {Error: "no such mailbox", Permanent: true}} {
		m := w.addMail(r, epoch)
		held := m.Claimed("d", minutes(1), hold)
		held.Epoch = m.Epoch
		want := w.settled(held, o, minutes(2))
		w.update(saveMail(want))
		w.equal("settled", getMail(w, m.ID), want)
	}
}

func withdrawIsTheCores(w *world) {
	r := w.addDatabase("shop")
	spared, invitation := w.addMail(r, epoch), newID[id.InvitationID]()
	pending := w.mail(r, epoch)
	held := w.mail(r, epoch).Claimed("d", epoch, hold)
	sent := w.settled(w.mail(r, epoch).Claimed("d", epoch, hold), mail.Outcome{}, minutes(1))
	every := []mail.Mail{pending, held, sent}
	for i := range every {
		every[i].InvitationID = invitation
		w.update(addMail(every[i]))
	}
	w.update(writing2(ports.Tx.Mails, ports.Mails.Withdraw, invitation, minutes(2)))
	for _, m := range every {
		want := must(m.Withdrawn(minutes(2)))(w)
		w.equal("withdrawn, which was "+string(m.Status), getMail(w, m.ID), want)
	}
	w.refused("the outcome of the attempt that ran", ports.ErrLeaseLost, saveMail(w.settled(held, mail.Outcome{}, minutes(3))))
	w.equal("the mail of another invitation", getMail(w, spared.ID), spared)
}

func lostLeaseSavesNoMail(w *world) {
	w.addMail(w.addDatabase("shop"), epoch)
	slept := w.mustClaimMail(minutes(1), 1)
	current := w.mustClaimMail(*slept.Until, 1)
	w.refused("an outcome under the old epoch", ports.ErrLeaseLost, saveMail(w.settled(slept, mail.Outcome{}, minutes(3))))
	ahead := current
	ahead.Epoch++
	w.refused("one under an epoch that never was", ports.ErrLeaseLost, saveMail(ahead))
	w.equal("as the new owner has it", getMail(w, current.ID), current)
}

func recentMailsAreCounted(w *world) {
	r := w.addDatabase("shop")
	_, other := w.addAccount("eve@example.com")
	foreign := w.addDatabase("foreign", func(r *database.Record) { r.AccountID = other.ID })
	for _, to := range []string{
		"bob@example.com", "bob+0@example.com", "bob+1@example.com", "bob+@example.com", "bob++a+b@example.com",
		"carol@example.com", "carol+bob@example.com", "+bob@example.com", "bob@example.com+1", "b.ob@example.com", "bob@example.org",
	} {
		m := w.mail(r, minutes(5))
		m.Recipient = to
		w.update(addMail(m))
	}
	w.addMail(foreign, minutes(5))
	w.addMail(r, minutes(1)) // too long ago
	w.update(addMail(mailToPerson(w.account.ID, mail.ToReset, minutes(5))))
	w.update(addMail(mailToPerson(w.account.ID, mail.ToTell, minutes(5)))) // does not count
	w.update(addMail(mailToPerson(w.account.ID, mail.ToWarn, minutes(5))))
	w.update(addMail(mailToPerson(w.account.ID, mail.ToWarn, epoch))) // too long ago
	w.equal("recent mails", found(w.view, func(ctx context.Context, tx ports.Tx) (mail.Recent, error) {
		return tx.Mails().Recent(ctx, w.account.ID, "bob+shop@example.com", minutes(1))
	}), mail.Recent{ToRecipient: 6, OfAccount: 12, Together: 7, Warnings: 1})
}

func mailClaimIsTheCores(w *world) {
	m := w.addMail(w.addDatabase("shop"), minutes(1))
	w.noMailDue("a mail before its time", epoch, 1)
	got := w.mustClaimMail(minutes(1), 1)
	w.equal("claimed", got, m.Claimed("dispatcher-1", minutes(1), hold))
	w.equal("stored", getMail(w, m.ID), got)
	w.noMailDue("a mail that is held", got.Until.Add(-time.Microsecond), enough)
	again := w.mustClaimMail(*got.Until, 1)
	w.equal("claimed again when the lease has ended", again, got.Claimed("dispatcher-1", *got.Until, hold))
	w.update(saveMail(w.settled(again, mail.Outcome{}, minutes(9))))
	w.noMailDue("a mail that was sent", minutes(500), enough)
}

func longestDueMailFirst(w *world) {
	r := w.addDatabase("shop")
	third, first, second := w.mail(r, minutes(3)), w.mail(r, minutes(1)), w.mail(r, minutes(2))
	for _, m := range []mail.Mail{third, first, second} {
		w.update(addMail(m))
	}
	for _, want := range []mail.Mail{first, second, third} {
		w.equal("the next", w.mustClaimMail(minutes(4), enough).ID, want.ID)
	}
}

func accountsTakeTurns(w *world) {
	_, other := w.addAccount("eve@example.com")
	busy := w.addDatabase("busy", func(r *database.Record) { r.AccountID = other.ID })
	calm := w.addDatabase("calm")
	for i := range 50 {
		w.addMail(busy, minutes(-i))
	}
	last := w.addMail(calm, epoch)
	served := map[id.AccountID]int{w.mustClaimMail(minutes(1), 2).AccountID: 1}
	served[w.mustClaimMail(minutes(1), 2).AccountID]++
	w.equal("the first two claims", served, map[id.AccountID]int{w.account.ID: 1, other.ID: 1})
	w.equal("then the other has its second", w.mustClaimMail(minutes(1), 2).AccountID, other.ID)
	w.noMailDue("an account with as many held as it may", minutes(1), 2)
	w.update(saveMail(w.settled(getMail(w, last.ID), mail.Outcome{}, minutes(1))))
	w.noMailDue("when another account's was sent", minutes(1), 2)
	next := w.addMail(calm, minutes(1))
	w.equal("the other account's next", w.mustClaimMail(minutes(1), 2).ID, next.ID)
}

func noMailIsClaimedTwice(w *world) {
	const accounts, each, most = 3, 20, 2
	for i := range accounts {
		_, a := w.addAccount(fmt.Sprintf("u%d@example.com", i))
		r := w.addDatabase(numbered(i), func(r *database.Record) { r.AccountID = a.ID })
		for range each {
			w.addMail(r, epoch)
		}
	}
	w.claimedOnce(accounts*each, most, func(host ports.Store, owner string) (string, string, transaction, error) {
		m, err := claimMailAt(w.Context(), host, owner, minutes(1), most)
		if err != nil {
			return "", "", nil, err
		}
		return string(m.ID), string(m.AccountID), saveMail(w.settled(m, mail.Outcome{}, minutes(1))), nil
	})
}

func oldMailsAreForgotten(w *world) {
	r := w.addDatabase("shop")
	open := w.addMail(r, epoch)
	var ended []mail.Mail
	for i := range 3 {
		m := w.settled(w.mail(r, epoch).Claimed("d", epoch, hold), mail.Outcome{}, minutes(i))
		ended = append(ended, m)
		w.update(addMail(m))
	}
	forget := func(before time.Time, limit int) {
		w.update(writing2(ports.Tx.Mails, ports.Mails.Forget, before, limit))
	}
	forget(minutes(0), 10)
	forget(minutes(9), 1)
	w.unknown("the oldest", reading(ports.Tx.Mails, ports.Mails.Lock, ended[0].ID))
	w.equal("beyond the limit", getMail(w, ended[1].ID), ended[1])
	forget(minutes(2), 10)
	w.unknown("the second", reading(ports.Tx.Mails, ports.Mails.Lock, ended[1].ID))
	w.equal("before its time", getMail(w, ended[2].ID), ended[2])
	w.equal("what waits", getMail(w, open.ID), open)
}

func mailBacklogCounts(w *world) {
	backlog := func() ports.Tally { return read0(w, ports.Tx.Mails, ports.Mails.Backlog) }
	w.equal("of an empty store", backlog(), ports.Tally{})
	r := w.addDatabase("shop")
	w.addMail(r, minutes(2))
	w.addMail(r, minutes(1))
	oldest := minutes(1)
	w.equal("of two", backlog(), ports.Tally{Count: 2, Oldest: &oldest})
	held := w.mustClaimMail(minutes(3), 1)
	w.equal("of one that is held", backlog(), ports.Tally{Count: 2, Oldest: &oldest})
	w.update(saveMail(w.settled(held, mail.Outcome{}, minutes(4))))
	oldest = minutes(2)
	w.equal("when one was sent", backlog(), ports.Tally{Count: 1, Oldest: &oldest})
}

func mailWakes(w *world) {
	r := w.addDatabase("shop")
	c, stop := w.another(w.T).Dispatchers.Wake()
	defer stop()
	if !wokenBy(c, func(int) { w.addMail(r, epoch) }) {
		w.Error("a mail did not wake a dispatcher of another host")
	}
}
