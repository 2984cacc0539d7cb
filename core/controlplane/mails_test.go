package controlplane_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/mails"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
	"github.com/pgherd/pgherd/ports"
)

func TestMailIsSentOnce(t *testing.T) {
	w := newWorld(t)
	m := w.invites(w.made("shop").Record, recipient)
	w.mails(w.ControlPlane)
	got := w.mailbox.Mails(recipient)
	if len(got) != 1 || got[0].ID != m.ID || !containsToken(got[0].Text) {
		t.Fatalf("%+v", got)
	}
	w.mailEnded(m, mail.Sent)
	equal(t, "complaints", len(w.mailLog(m.DatabaseID)), 0)
	w.clock.Advance(24 * time.Hour)
	w.mails(w.ControlPlane)
	equal(t, "mails in the end", len(w.mailbox.Mails(recipient)), 1)
}

func TestMailIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	said := &spy{}
	w.ports.Journal = said
	cp := w.process(quick())
	w.mailbox.On(recipient, func(_ context.Context, n int) error {
		if n < 3 {
			return errDown
		}
		return nil
	})
	m := w.invites(w.made("shop").Record, recipient)
	w.mails(cp)
	w.mails(cp)
	equal(t, "status", w.stored(m).Status, mail.Pending)
	w.clock.Advance(time.Minute)
	w.mails(cp)
	equal(t, "failures", w.stored(m).Attempts, 2)
	w.clock.Advance(2 * time.Minute)
	w.mails(cp)
	w.mailEnded(m, mail.Sent)
	var what []string
	for _, e := range said.events {
		if e.MailID == m.ID {
			what = append(what, e.What)
		}
		noToken(t, "the journal", e)
	}
	equal(t, "the journal", strings.Join(what, " "), "mail.deferred mail.deferred mail.delivered")
}

func TestMailIsGivenUp(t *testing.T) {
	w := newWorld(t)
	const elsewhere = "carol@example.com"
	w.mailbox.On(recipient, func(_ context.Context, n int) error {
		return &mail.Refusal{Reason: "the mail server refuses the address (550 5.1.1)", Doubtful: n == 1}
	})
	w.mailbox.On(elsewhere, down)
	refused := w.invites(w.made("shop").Record, recipient)
	w.mails(w.ControlPlane)
	equal(t, "status after a doubtful refusal", w.stored(refused).Status, mail.Pending)
	w.clock.Advance(time.Minute)
	w.mails(w.ControlPlane)
	w.mailEnded(refused, mail.Failed)
	w.toldOnce(refused, "the mail server refuses the address (550 5.1.1)")

	never := w.invites(w.made("other").Record, elsewhere)
	for range mail.MaxAttempts {
		equal(t, "status", w.stored(never).Status, mail.Pending)
		w.mails(w.ControlPlane)
		w.clock.Advance(max(0, w.stored(never).NotBefore.Sub(w.clock.Now())))
	}
	w.mailEnded(never, mail.Failed)
	w.toldOnce(never, "the mail could not be sent in several days of attempts")
}

func TestMailOfAnExpiredInvitationIsNotSent(t *testing.T) {
	w := newWorld(t)
	m := w.invites(w.made("shop").Record, recipient)
	w.clock.Advance(7 * 24 * time.Hour)
	w.mails(w.ControlPlane)
	equal(t, "mails", len(w.mailbox.Mails("")), 0)
	w.mailEnded(m, mail.Failed)
	w.toldOnce(m, "the invitation expired before its mail could be sent")
}

// The process dies at each point: the mail arrives all the same, and one that arrives twice has one ID.
func TestAMailerThatDiesLosesNothing(t *testing.T) {
	for point, before := range map[string]int{mails.CrashClaimed: 0, mails.CrashSent: 1} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			m := w.invites(w.made("shop").Record, recipient)
			dead := w.process(mortal(point))
			equal(t, "died", dies(func() { w.mails(dead) }), true)
			equal(t, "sent before the death", len(w.mailbox.Mails("")), before)
			w.mails(w.ControlPlane)
			equal(t, "sent under the dead one's lease", len(w.mailbox.Mails("")), before)
			w.clock.Advance(mail.Hold)
			w.mails(w.ControlPlane)
			got := w.mailbox.Mails(recipient)
			equal(t, "mails", len(got), before+1)
			for _, one := range got {
				equal(t, "ID", one.ID, m.ID)
			}
			w.mailEnded(m, mail.Sent)
			equal(t, "failures", w.stored(m).Attempts, 0)
		})
	}
}

func TestAnUnreadableTokenIsNoEndlessLoop(t *testing.T) {
	w := newWorld(t)
	r := w.made("shop").Record
	other := w.invites(r, "else@example.com")
	m := mail.New(id.FromBytes[id.MailID](w.ports.Entropy.UUID()), other.Letter, []byte("garbage"), w.clock.Now())
	ok(t, w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Mails().Add(ctx, m) }))
	w.mails(w.ControlPlane)
	equal(t, "failures", w.stored(m).Attempts, 1)
	equal(t, "status", w.stored(m).Status, mail.Pending)
}

// A link that leads nowhere is not sent: another host may know where it leads.
func TestAMailWaitsForItsPage(t *testing.T) {
	w := newWorld(t)
	said := &spy{}
	w.ports.Journal = said
	if link := must(w.Operator.WelcomeUser(w.ctx, "owner@example.org"))(t); !link.Mailed {
		t.Error("it is not mailed")
	}
	w.mails(w.process(quick()))
	equal(t, "mails", len(w.mailbox.Mails("owner@example.org")), 0)
	w.clock.Advance(time.Hour)
	w.mails(w.process(withResets(t)))
	equal(t, "mails of a host that knows the page", len(w.mailbox.Mails("owner@example.org")), 1)
}

func TestOldMailsAreForgotten(t *testing.T) {
	w := newWorld(t)
	m := w.invites(w.made("shop").Record, recipient)
	w.mails(w.ControlPlane)
	w.clock.Advance(mail.Retention)
	ok(t, w.Rounds.Once(w.ctx))
	equal(t, "status", w.stored(m).Status, mail.Sent)
	w.clock.Advance(time.Second)
	ok(t, w.Rounds.Once(w.ctx))
	err := w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error { return errOf(tx.Mails().Lock(ctx, m.ID)) })
	equal(t, "after its time", err, ports.ErrNoRow)
}

func TestMailIsWithdrawnDuringItsAttempt(t *testing.T) {
	w := newWorld(t)
	var m mail.Mail
	w.mailbox.On(recipient, func(context.Context, int) error {
		return w.store.Update(w.ctx, func(ctx context.Context, tx ports.Tx) error {
			return tx.Mails().Withdraw(ctx, m.InvitationID, w.clock.Now())
		})
	})
	m = w.invites(w.made("shop").Record, recipient)
	w.mails(w.ControlPlane)
	w.mailEnded(m, mail.Withdrawn)
	equal(t, "complaints", len(w.mailLog(m.DatabaseID)), 0)
}

// A mail that a mailer holds too long is sent by another; what the first brings counts for nothing.
func TestAMailerThatSleptRecordsNothing(t *testing.T) {
	w := newWorld(t)
	other := w.process(quick())
	w.mailbox.On(recipient, func(_ context.Context, n int) error {
		if n > 1 {
			return nil
		}
		w.clock.Advance(mail.Hold)
		equal(t, "the other sends it", must(other.Mails.RunNext(w.ctx))(t), true)
		return errDown
	})
	m := w.invites(w.made("shop").Record, recipient)
	w.mails(w.ControlPlane)
	w.mailEnded(m, mail.Sent)
	equal(t, "failures", w.stored(m).Attempts, 0)
}

// A mail server hangs for one account's mails: those of another are sent.
func TestAnAccountsHangingMailsHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	a, _, other := w.newAccount("eve@example.org", account.Pro)
	busy := must(w.Databases.Create(w.ctx, other, request("busy")))(t).Record
	equal(t, "its account", busy.AccountID, a.ID)
	const hanging = "nobody@example.com"
	var underWay atomic.Int32
	w.mailbox.On(hanging, func(ctx context.Context, _ int) error {
		underWay.Add(1)
		<-ctx.Done()
		return ctx.Err()
	})
	for range 50 {
		w.invites(busy, hanging)
	}
	mine := w.invites(w.made("shop").Record, recipient)
	ctx, stop := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { w.Mails.Run(ctx, w.store.Dispatchers()) })
	asExpected := func() bool { return len(w.mailbox.Mails(recipient)) == 1 && underWay.Load() >= 2 }
	for until := time.Now().Add(20 * time.Second); !asExpected() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	stop()
	running.Wait()
	w.mailEnded(mine, mail.Sent)
	equal(t, "of the other account under way", underWay.Load(), 2)
}

func TestTokensFollowARotationOfTheKeys(t *testing.T) {
	w := newWorld(t)
	m := w.invites(w.made("shop").Record, recipient)
	must(w.Keyring.Reseal(w.ctx))(t)
	equal(t, "sealed anew", string(w.stored(m).SealedToken) != string(m.SealedToken), true)
	w.mails(w.ControlPlane)
	if got := w.mailbox.Mails(recipient); len(got) != 1 || !containsToken(got[0].Text) {
		t.Errorf("%+v", got)
	}
}
